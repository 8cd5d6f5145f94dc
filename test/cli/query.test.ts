// `sagitta query` and `sagitta collections` against a real server, and error messages of all commands.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { Field, List, Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow';
import { createClient, encodeValues } from '../../src/client/client.js';
import { startTestServer, type TestServer } from '../support/server-in-process.js';
import { type CommandOptions, type CommandResult, makeFolder, run } from './command.js';

let server: TestServer;
let folder: Awaited<ReturnType<typeof makeFolder>>;

before(async () => {
  server = await startTestServer();
  folder = await makeFolder();
  const { collections, collection } = createClient({ baseUrl: server.url });
  await collections.create({ id: 'points', dimension: 2, metric: 'dot' });
  const rows = Array.from({ length: 12 }, (_, n) => ({
    id: `p${n}`,
    values: [n, 1],
    metadata: { name: `point ${n}`, even: n % 2 === 0 },
  }));
  await collection('points').upsert(rows);
});
after(async () => {
  await server.close();
  await folder.remove();
});

function sagitta(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return run(args, { ...options, env: { SAGITTA_URL: server.url, ...options.env } });
}

async function stdoutOf(args: readonly string[], options?: CommandOptions): Promise<string> {
  const { code, stdout, stderr } = await sagitta(args, options);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  return stdout;
}

it('shows the nearest as a table with their metadata', async () => {
  const table = await stdoutOf(['query', 'points', '--vector', '[1, 0]', '--top-k', '2']);
  assert.equal(
    table,
    '#    score  id   name      even\n' +
      '1  11.0000  p11  point 11  false\n' +
      '2  10.0000  p10  point 10  true\n',
  );
});

it('searches by words in a collection that was created with text', async () => {
  const create = [
    'collections',
    'create',
    'notes',
    '--dimension',
    '2',
    '--text-fields',
    'name,body',
  ];
  const record = JSON.parse(await stdoutOf([...create, '--text-language', 'english', '--json']));
  assert.deepEqual(record.text.fields, ['name', 'body']);
  await createClient({ baseUrl: server.url })
    .collection('notes')
    .upsert([
      { id: 'a', values: [1, 0], metadata: { name: 'whales', body: 'in the sea' } },
      { id: 'b', values: [1, 0], metadata: { name: 'a whale' } },
    ]);
  const find = async (...args: string[]) => {
    const reply = JSON.parse(await stdoutOf(['query', 'notes', '--json', ...args]));
    return reply.matches.map(({ id }: { id: string }) => id);
  };
  assert.deepEqual(await find('--text', 'whale'), ['b', 'a']);
  assert.deepEqual(await find('--text', 'Whales sea', '--match', 'all'), ['a']);
  const { stderr, code } = await sagitta(['query', 'notes', '--text', 'sea', '--id', 'a']);
  assert.match(
    stderr,
    /expected exactly one of --vector, --id, --text, --sparse, .* and examples .*, found 2/,
  );
  assert.equal(code, 2);
  await stdoutOf(['collections', 'delete', 'notes', '--yes']);
});

it('shows the selected fields, or none', async () => {
  const args = ['query', 'points', '--vector', '[1,0]', '-k', '1'];
  assert.equal(
    await stdoutOf([...args, '--fields', 'name']),
    '#    score  id   name\n1  11.0000  p11  point 11\n',
  );
  assert.equal(await stdoutOf([...args, '--no-metadata']), '#    score  id\n1  11.0000  p11\n');
});

it('takes the vector from numbers, JSON, base64, a file or stdin', async () => {
  const base64 = encodeValues(new Float32Array([1, 0]));
  const path = join(folder.path, 'vector.json');
  await writeFile(path, '[1, 0]\n');
  for (const [vector, input] of [
    ['[1,0]', ''],
    ['1,0', ''],
    [' 1e0 , -.0', ''],
    ['1 0', ''],
    [base64, ''],
    [`"${base64}"`, ''],
    [`@${path}`, ''],
    ['-', '[1,0]\n'],
    ['-', '1\n0\n'],
    ['-', `${base64}\n`],
  ] as const) {
    const args = ['query', 'points', '--vector', vector, '-k', '1', '--json'];
    const reply = JSON.parse(await stdoutOf(args, { input })) as { matches: { id: string }[] };
    assert.equal(reply.matches[0]?.id, 'p11');
  }
});

it('searches with a stored vector under a filter and another metric', async () => {
  const filter = join(folder.path, 'filter.json');
  await writeFile(filter, '{"even": true}');
  const args = ['query', 'points', '--id', 'p6', '--filter', `@${filter}`, '--metric', 'euclidean'];
  assert.equal(
    await stdoutOf([...args, '-k', '2', '--fields', 'even']),
    '#   score  distance  id  even\n1  0.3333    2.0000  p4  true\n2  0.3333    2.0000  p8  true\n',
  );
});

it('--recall grades text ids from every format that query --file writes, and from lists', async () => {
  const path = (name: string) => join(folder.path, name);
  await writeFile(path('asked.ndjson'), '{"values":[1,0]}\n{"values":[0,1]}\n{"values":[-1,0]}\n');
  const ask = ['query', 'points', '--file', path('asked.ndjson'), '-k', '3'];
  const recallOf = async (name: string): Promise<number> => {
    const { stdout, stderr, code } = await sagitta([...ask, '--recall', path(name), '--json']);
    assert.equal(code, 0, stderr);
    return (JSON.parse(stdout) as { recall: number }).recall;
  };
  for (const extension of ['ndjson', 'csv', 'arrow', 'arrows', 'parquet']) {
    const found = await sagitta([...ask, '-o', path(`found.${extension}`)]);
    assert.equal(found.code, 0, found.stderr);
    assert.equal(await recallOf(`found.${extension}`), 1, extension);
  }
  const { stdout } = await sagitta([...ask, '--format', 'csv']);
  const lines = stdout.trimEnd().split('\n');
  const rowsOf = (query: number) => lines.filter((line) => line.startsWith(`${query},`));
  await writeFile(path('gap.csv'), [lines[0], ...rowsOf(0), ...rowsOf(2)].join('\n'));
  await writeFile(path('end.csv'), [lines[0], ...rowsOf(0), ...rowsOf(1)].join('\n'));
  for (const name of ['gap.csv', 'end.csv']) assert.equal(await recallOf(name), 0.666667);
  const ids = ['p11', 'p10', 'p9'];
  const others = ['p0', 'p1', 'p2'];
  for (const list of [ids, { ids }, { neighbors: ids }, { matches: ids.map((id) => ({ id })) }]) {
    const text = [list, list, { ids: [...others, 'p3'] }].map((each) => JSON.stringify(each));
    await writeFile(path('lists.ndjson'), text.join('\n'));
    assert.ok((await recallOf('lists.ndjson')) > 0.6, JSON.stringify(list));
  }
  // p0 and p1 are not among the three nearest of the first query, and count against k, not their number.
  for (const [lists, k, recall] of [
    ['["p11"]\n["p11","p0"]\n["p0","p1","p2"]\n', 3, (1 + 2 + 3) / 9],
    ['[]\n["p9"]\n[]\n', 1, 1 / 3],
    ['["p11","p11","p11"]\n["p0","p1","p2"]\n["p0","p1","p2"]\n', 3, 7 / 9],
    [`${JSON.stringify(Array.from({ length: 12 }, (_, n) => `p${n}`))}\n[]\n[]\n`, 20, 1 / 3],
  ] as const) {
    await writeFile(path('short.ndjson'), lists);
    const args = ['query', 'points', '--file', path('asked.ndjson'), '-k', String(k)];
    const found = await sagitta([...args, '--recall', path('short.ndjson'), '--json']);
    const expected = Number(recall.toFixed(6));
    assert.deepEqual(JSON.parse(found.stdout), { recall: expected, k, queries: 3 }, lists);
  }
  await writeFile(path('short.ndjson'), '["p11"]\n["p11"]\n[]\n');
  const short = await sagitta([...ask, '--recall', path('short.ndjson')]);
  assert.match(short.stderr, /no query has more than 1 ids; the others of 3 \(--top-k\) count/);
  assert.match(short.stdout, /^recall@3: 0\.2222 \(3 queries\)$/m);
  for (const [name, text, message] of [
    ['x.ndjson', '{"a":1}', /x\.ndjson:1: found \{"a":1\}, expected matches, ids or a list of ids/],
    ['x.csv', 'query,id\n0,a\n', /found the columns query, id; expected query_index and id/],
    [
      'x.csv',
      'query_index,id\n1,a\n0,a\n',
      /found query_index 0 after 1, expected rows in the order/,
    ],
    ['x.ndjson', '["a"]\n', /found 1 results, but .* has more queries/],
    ['x.ndjson', '[]\n[]\n[]\n["a"]\n', /found results of more than the 3 queries of .*asked/],
    ['x.ndjson', '["a"]\n["b"]\n["a"]\n', /no result is right, and .* none of the first ids \(a\)/],
    ['x.ndjson', '[null]\n', /x\.ndjson:1: found the id null, expected a text or an integer/],
    ['x.ndjson', '{"query_index":1,"ids":[]}\n', /:1: found query_index 1, expected 0/],
    ['x.ndjson', '[\n', /x\.ndjson:1: invalid JSON/],
    ['x.csv', 'query_index,id\nx,a\n', /x\.csv:2: found the query_index "x", expected an integer/],
    ['x.csv', 'query_index,id\n0,\n', /x\.csv:2: found the id "", expected a text/],
    ['x.csv', 'query_index,id\n0,a,b\n', /x\.csv:2: found 3 cells/],
    ['x.csv', 'query_index,id\n7,p0\n', /found results of more than the 3 queries/],
    [
      'x.csv',
      'query_index,rank,id\n0,1,a\n0,3,b\n0,2,c\n',
      /x\.csv:4: found rank 2 after .*, expected the matches of a query best first/,
    ],
  ] as const) {
    await writeFile(path(name), text);
    const { stderr, code } = await sagitta([...ask, '--recall', path(name)]);
    assert.equal(code, 1);
    assert.match(stderr, message);
  }
});

it('--recall grades lists of ids in columns of tables', async () => {
  const path = (name: string) => join(folder.path, name);
  await writeFile(path('asked.csv'), 'values\n"1,0"\n"-1,0"\n');
  const ask = ['query', 'points', '--file', path('asked.csv'), '-k', '2', '--json'];
  const lists = new List(new Field('item', new Utf8(), true));
  for (const [rows, expected] of [
    [
      [
        ['p11', 'p10'],
        ['p0', 'p9'],
      ],
      /"recall":0\.75,/,
    ],
    [[['p11', 'p10'], null], /"recall":0\.5,/],
    [[['p11', null], ['p0']], /row 1: found the id null/],
  ] as const) {
    const table = new Table({ ids: vectorFromArray(rows as unknown as string[][], lists) });
    await writeFile(path('lists.arrow'), tableToIPC(table, 'file'));
    const { stdout, stderr } = await sagitta([...ask, '--recall', path('lists.arrow')]);
    assert.match(stdout + stderr, expected);
  }
});

it('--file repeats the ids of the queries', async () => {
  const path = (name: string) => join(folder.path, name);
  const ask = (name: string, ...args: string[]) =>
    sagitta(['query', 'points', '--file', path(name), '-k', '1', '--no-metadata', ...args]);
  await writeFile(path('named.ndjson'), '{"id":"ä","values":[1,0]}\n{"id":7,"values":[-1,0]}\n');
  const replies = (await ask('named.ndjson')).stdout.trimEnd().split('\n');
  assert.deepEqual(
    replies.map((line) => JSON.parse(line).query_id),
    ['ä', '7'],
  );
  await writeFile(path('named.csv'), 'key,values\nq1,"1,0"\nq2,"-1,0"\n');
  const table = await ask('named.csv', '--id-field', 'key', '--format', 'csv');
  const [title, ...rows] = table.stdout.trimEnd().split('\n');
  assert.equal(title, '"query_index","query_id","rank","id","score"');
  assert.deepEqual(
    rows.map((row) => row.split(',').slice(0, 4).join()),
    ['0,"q1",1,"p11"', '1,"q2",1,"p0"'],
  );
  await writeFile(path('some.ndjson'), '{"id":"a","values":[1,0]}\n{"values":[-1,0]}\n');
  const { code, stderr } = await ask('some.ndjson');
  assert.equal(code, 1);
  assert.match(stderr, /some\.ndjson:2: the query has no id, but the first query .* has one/);
  const without = await ask('asked.csv', '--format', 'csv');
  assert.match(without.stdout, /^"query_index","rank","id","score"$/m);
  await writeFile(path('none.ndjson'), '\n');
  assert.match((await ask('none.ndjson')).stderr, /none\.ndjson: the file contains no vectors/);
});

it('--recall reads a filter from stdin once for all requests', async () => {
  const { collections, collection } = createClient({ baseUrl: server.url });
  await collections.create({ id: 'numbered', dimension: 1, metric: 'dot' });
  const metadata = (n: number) => ({ even: n % 2 === 0 });
  const rows = [1, 2, 3].map((n) => ({ id: String(n), values: [n], metadata: metadata(n) }));
  await collection('numbered').upsert(rows);
  // More queries than one request takes. The expected match is the largest even number.
  const count = 501;
  const records = (item: readonly number[]) => Buffer.concat(Array(count).fill(Buffer.from(item)));
  const queries = join(folder.path, 'queries.bvecs');
  await writeFile(queries, records([1, 0, 0, 0, 1]));
  const results = join(folder.path, 'results.ivecs');
  await writeFile(results, records([1, 0, 0, 0, 2, 0, 0, 0]));
  const args = ['query', 'numbered', '--file', queries, '--recall', results, '-k', '1', '--json'];
  assert.deepEqual(
    JSON.parse(await stdoutOf([...args, '--filter', '-'], { input: '{"even": true}' })),
    { recall: 1, k: 1, queries: count },
  );
  assert.deepEqual(JSON.parse(await stdoutOf(args)), { recall: 0, k: 1, queries: count });
  await collections.delete('numbered');
});

it('--file searches the named vector of --using', async () => {
  const { collections, collection } = createClient({ baseUrl: server.url });
  await collections.create({ id: 'named', vectors: { title: { dimension: 1, metric: 'dot' } } });
  const rows = [1, 2, 3].map((n) => ({ id: `${n}`, vectors: { title: [n] } }));
  await collection('named').upsert(rows);
  const queries = join(folder.path, 'named.fvecs');
  await writeFile(
    queries,
    Buffer.concat([Buffer.of(1, 0, 0, 0), Buffer.from(Float32Array.of(-1).buffer)]),
  );
  const args = ['query', 'named', '--file', queries, '-k', '1'];
  const { stdout } = await sagitta([...args, '--using', 'title', '--format', 'ndjson']);
  assert.equal((JSON.parse(stdout) as { matches: { id: string }[] }).matches[0]!.id, '1');
  const { code, stderr } = await sagitta(args);
  assert.equal(code, 2);
  assert.match(stderr, /collection named has no unnamed vectors; expected --using title/);
  await collections.delete('named');
});

it('pages by cursor, and --all fetches every page', async () => {
  const args = ['query', 'points', '--vector', '[1,0]', '--limit', '5', '--no-metadata'];
  const first = await stdoutOf(args);
  const [, shown, cursor] = /\n\n(.*)\n(\S+)\n$/.exec(first)!;
  assert.equal(shown, 'Showing 5 of 12 matches. Use --all for all, or --cursor for the next page:');
  const second = await stdoutOf(['query', 'points', '--cursor', cursor!]);
  assert.match(second, /^#.*\n1 {2}6\.0000 {2}p6\n/);

  const ids = Array.from({ length: 12 }, (_, n) => `p${11 - n}`);
  const lines = (await stdoutOf([...args, '--all', '--json'])).trim().split('\n');
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { id: string }).id),
    ids,
  );
  const table = await stdoutOf([...args, '--all']);
  assert.deepEqual(
    [...table.matchAll(/^ *(\d+) .* (p\d+)$/gm)].map(([, rank, id]) => [rank, id]),
    ids.map((id, at) => [String(at + 1), id]),
  );
});

it('--json prints the reply of the server', async () => {
  const args = [
    'query',
    'points',
    '--vector',
    '[1,0]',
    '-k',
    '1',
    '--values',
    '--explain',
    '--json',
  ];
  const reply = JSON.parse(await stdoutOf(args)) as Record<string, unknown>;
  assert.deepEqual(reply.matches, [
    { id: 'p11', score: 11, values: [11, 1], metadata: { name: 'point 11', even: false } },
  ]);
  assert.equal((reply.explain as { rows_scanned: number }).rows_scanned, 12);
});

it('numbers keep their spelling', async () => {
  const { collections, collection } = createClient({ baseUrl: server.url });
  await collections.create({ id: 'digits', dimension: 1, metric: 'dot' });
  await collection('digits').upsertText([
    '{"id":"a","values":[1],"metadata":{"big":9223372036854775807,"one":1.0,"text":"2.0 \\"3.0"}}',
  ]);
  const args = ['query', 'digits', '--vector', '[1]', '-k', '1'];
  const spelled =
    /\{\s*"big": ?9223372036854775807,\s*"one": ?1\.0,\s*"text": ?"2\.0 \\"3\.0"\s*\}/;
  assert.match(await stdoutOf([...args, '--json']), spelled);
  const lines = await stdoutOf([...args, '--json', '--all']);
  assert.match(lines, spelled);
  assert.equal(lines.split('\n').length, 2);
  assert.match(
    await stdoutOf(args),
    /1\.0000 {2}a {3}9223372036854775807 {2}1\.0 {2}2\.0 "3\.0\n$/,
  );
  await collections.delete('digits');
});

it('an export gives each metadata path a column of its type on request', async () => {
  const { collections, collection } = createClient({ baseUrl: server.url });
  await collections.create({ id: 'typed', dimension: 2, metric: 'dot' });
  await collection('typed').upsertText([
    '{"id":"a","values":[1,0],"metadata":{"i":9007199254740993,"t":["x",null],"n":0.10000000149011612,"s":"x \\"y\\"","b":true,"l":[1,"a"],"o":{"p":1,"q":{"r":"z"}},"m":1,"id":"in"}}',
    '{"id":"b","values":[0,1],"metadata":{"n":null,"b":false,"m":"text","o":{"p":2}}}',
    '{"id":"c","values":[0.5,1],"metadata":{}}',
  ]);
  const typed = ['export', 'typed', '--columns', 'typed'];
  const { stdout } = await sagitta([...typed, '--format', 'csv']);
  assert.deepEqual(stdout.trimEnd().split('\n'), [
    '"id","values","b","i","metadata.id","l","m","n","o.p","o.q.r","s","t"',
    '"a","[1,0]",true,9007199254740993,"in","[1,""a""]","1",0.10000000149011612,1,"z","x ""y""","[""x"",null]"',
    '"b","[0,1]",false,,,,"""text""",,2,,,',
    '"c","[0.5,1]",,,,,,,,,,',
  ]);
  // What a filter leaves out has no columns.
  const some = await sagitta([...typed, '--format', 'csv', '--filter', '{"o.p":2}', '--no-values']);
  assert.equal(some.stdout, '"id","b","m","n","o.p"\n"b",false,"text",,2\n');
  for (const extension of ['parquet', 'arrow', 'arrows']) {
    const path = join(folder.path, `typed.${extension}`);
    assert.equal((await sagitta([...typed, '-o', path])).code, 0);
    const again = ['import', path, '-c', `typed-${extension}`];
    assert.equal((await sagitta(again, { env: { XDG_STATE_HOME: folder.path } })).code, 0);
    const { metadata } = await collection(`typed-${extension}`).get('a');
    const expected = { 'metadata.id': 'in', l: '[1,"a"]', m: '1', 'o.p': 1, 'o.q.r': 'z' };
    // The client reads numbers as float64.
    const i = 9007199254740992;
    assert.deepEqual(metadata, {
      i,
      t: ['x', null],
      n: 0.10000000149011612,
      s: 'x "y"',
      b: true,
      ...expected,
    });
    await collections.delete(`typed-${extension}`);
  }
  for (const [args, message] of [
    [[], /--columns typed does not apply to ndjson; expected csv, arrow/],
    [['--format', 'csv', '--no-metadata'], /cannot be combined with --no-metadata/],
  ] as const) {
    const { stderr, code } = await sagitta([...typed, ...args]);
    assert.equal(code, 2);
    assert.match(stderr, message);
  }
  await collections.delete('typed');
});

it('a join gives each pair once on request, and says how far it is', async () => {
  const pairs = ['join', 'points', '--score-threshold', '-1e9', '--format', 'csv'];
  const { stdout, stderr } = await sagitta([...pairs, '--unordered-pairs']);
  assert.equal(stdout.trimEnd().split('\n').length, 1 + (12 * 11) / 2);
  assert.match(stderr, /^points: 100 % {2}12 rows/m);
  assert.equal((await sagitta(pairs)).stdout.trimEnd().split('\n').length, 1 + 12 * 11);
});

it('CSV without rows has a header line', async () => {
  const none = ['--filter', '{"name":"none"}', '--format', 'csv'];
  assert.equal(await exported(none), 'id,values,metadata\n');
  assert.equal(await exported([...none, '--no-values']), 'id,metadata\n');
  const { stdout } = await sagitta(['join', 'points', '-k', '1', ...none]);
  assert.equal(stdout, '"id","rank","match_id","score"\n');
});

async function exported(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await sagitta(['export', 'points', ...args]);
  assert.equal(code, 0, stderr);
  return stdout;
}

it('reports when nothing matches', async () => {
  const args = ['query', 'points', '--vector', '[1,0]', '--filter', '{"name":"none"}'];
  assert.equal(await stdoutOf(args), 'No matches.\n');
});

it('creates, shows, lists and deletes collections', async () => {
  const create = ['collections', 'create', 'made', '--dimension', '3', '--metric', 'euclidean'];
  const made = JSON.parse(
    await stdoutOf([...create, '--description', 'of a test', '--label', 'a=b=c', '--json']),
  ) as Record<string, unknown>;
  assert.equal(made.metric, 'euclidean');
  assert.deepEqual(made.labels, { a: 'b=c' });
  assert.match(await stdoutOf(['collections', 'show', 'made']), /^description {3}of a test$/m);
  assert.match(
    await stdoutOf(['collections', 'list']),
    /^id +vectors .*\nmade +0 +3 {2}euclidean .*of a test\npoints +12 +2 {2}dot /,
  );
  const refused = await sagitta(['collections', 'delete', 'made']);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /pass --yes to delete without confirmation/);
  assert.equal(
    await stdoutOf(['collections', 'delete', 'made', '--yes']),
    'Deleted collection made with 0 vectors.\n',
  );
  const listed = JSON.parse(await stdoutOf(['collections', 'list', '--json'])) as { id: string }[];
  assert.deepEqual(
    listed.map((record) => record.id),
    ['points'],
  );
});

const FAILURES: readonly [string, readonly string[], number, RegExp][] = [
  ['an unknown command', ['serv'], 2, /unknown command 'serv'\n\(Did you mean serve\?\)/],
  ['an unknown option', ['query', 'points', '--topk', '3'], 2, /unknown option '--topk'/],
  ['a missing argument', ['query'], 2, /missing required argument 'collection'/],
  ['a missing option', ['import', 'x'], 2, /required option '-c, --collection <id>'/],
  ['a number out of range', ['query', 'p', '-k', '0'], 2, /'0' is invalid. Expected an integer/],
  [
    'no vector',
    ['query', 'points'],
    2,
    /exactly one of --vector, --id, --text, --sparse, .* and examples .*, found 0/,
  ],
  [
    'two vectors',
    ['query', 'p', '--id', 'a', '--vector', '[1]'],
    2,
    /--text, .* and examples .*, found 2/,
  ],
  ['a broken vector', ['query', 'points', '--vector', '[1,'], 2, /--vector: expected JSON: /],
  [
    'a broken number of a vector',
    ['query', 'points', '--vector', '1,x'],
    2,
    /--vector: value 2 is "x", expected a number/,
  ],
  ['a missing number of a vector', ['query', 'points', '--vector', '1,'], 2, /value 2 is ""/],
  ['a vector of one number', ['query', 'points', '--vector', '5'], 1, /dimension is 2/],
  [
    'a broken filter',
    ['query', 'p', '--id', 'a', '--filter', '[]'],
    2,
    /--filter: expected a JSON/,
  ],
  ['a missing file', ['query', 'p', '--vector', '@none'], 2, /--vector: file not found: none/],
  [
    'a broken threshold',
    ['query', 'p', '--score-threshold', 'x'],
    2,
    /expected a number, found "x"/,
  ],
  [
    'a broken label',
    ['collections', 'create', 'x', '--dimension', '1', '--label', 'x'],
    2,
    /name=value/,
  ],
  [
    'an option of --file alone',
    ['query', 'p', '--id', 'a', '--id-field', 'x'],
    2,
    /--id-field requires --file/,
  ],
  [
    'an output of a recall',
    ['query', 'p', '--file', 'x', '--recall', 'x', '-o', 'x.csv'],
    2,
    /--output cannot be combined with --recall/,
  ],
  ['a missing collection', ['query', 'none', '--id', 'a'], 1, /collection "none"|"none"/],
  ['a missing vector', ['query', 'points', '--id', 'none'], 1, /no vector with the id "none"/],
  ['a wrong length', ['query', 'points', '--vector', '[1]'], 1, /dimension is 2/],
  ['an existing collection', ['collections', 'create', 'points', '--dimension', '2'], 1, /points/],
  ['a broken address', ['collections', 'list', '--url', 'x'], 1, /baseUrl.*found "x"/],
];

for (const [name, args, code, message] of FAILURES) {
  it(`${name} is reported in one line, with exit code ${code}`, async () => {
    const result = await sagitta(args);
    assert.equal(result.code, code);
    assert.equal(result.stdout, '');
    assert.match(result.stderr, /^sagitta: /);
    assert.match(result.stderr, message);
    assert.doesNotMatch(result.stderr, /\.js:\d+/);
  });
}

it('an unreachable server is reported with exit code 3', async () => {
  const { code, stderr } = await sagitta(['query', 'x', '--id', 'a'], {
    env: { SAGITTA_URL: 'http://127.0.0.1:1' },
  });
  assert.equal(code, 3);
  assert.match(stderr, /cannot reach http:\/\/127\.0\.0\.1:1\/.*Is the server running/);
});

it('--debug prints a stack trace, before or after the command', async () => {
  const args = ['query', 'points', '--id', 'none'];
  for (const withDebug of [
    ['--debug', ...args],
    [...args, '--debug'],
  ]) {
    const { code, stderr } = await sagitta(withDebug);
    assert.equal(code, 1);
    assert.match(stderr, /SagittaClientError: .*\n\s+at .*\.js:\d+/);
  }
});

it('no line of help is wider than 80 characters', async () => {
  const seen: string[] = [];
  const look = async (path: readonly string[]): Promise<void> => {
    const { stdout } = await sagitta([...path, '--help']);
    for (const line of stdout.split('\n')) {
      // The name of an environment variable cannot be wrapped.
      const isName = /^ {30,}\S+$/.test(line);
      assert.ok(isName || line.length <= 80, `sagitta ${path.join(' ')}: ${line}`);
    }
    seen.push(path.join(' '));
    const commands = /\nCommands:\n((?: .*\n)+)/.exec(stdout)?.[1] ?? '';
    const names = [...commands.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name!);
    await Promise.all(names.filter((name) => name !== 'help').map((name) => look([...path, name])));
  };
  await look([]);
  assert.ok(seen.includes('collections create') && seen.includes('query'), seen.join(', '));
});

it('help shows examples and exits with 0', async () => {
  for (const args of [[], ['query'], ['import'], ['export'], ['join'], ['serve'], ['completion']]) {
    const { code, stdout } = await sagitta([...args, '--help']);
    assert.equal(code, 0);
    assert.match(stdout, /Examples:\n {2}\$ /, args.join(' '));
  }
  assert.match(
    (await sagitta([])).stderr,
    /Exit codes: 0 success, 1 failure, 2 invalid arguments,\n3 server unreachable, 130 interrupted/,
  );
});

it('aggregate counts values and summarizes numbers', async () => {
  const filter = ['--filter', '{"even": true}'];
  const tables = await stdoutOf(['aggregate', 'points', '--facets', 'even,name', '--limit', '1']);
  assert.equal(
    tables,
    'even   vectors\nfalse        6\n1 of 2 values; 0 vectors have none\n\n' +
      'name     vectors\npoint 0        1\n1 of 12 values; 0 vectors have none\n\n' +
      '12 vectors\n',
  );
  const stats = await stdoutOf(['aggregate', 'points', '--stats', 'name', ...filter]);
  assert.match(stats, /^name\ncount +0\nmissing_count +6\n\n6 vectors\n$/);
  const json = await stdoutOf(['aggregate', 'points', '--facets', 'even', ...filter, '--json']);
  assert.deepEqual(JSON.parse(json).facets, [
    { path: 'even', values: [{ value: true, count: 6 }], distinct_count: 1, missing_count: 0 },
  ]);
  const nothing = await sagitta(['aggregate', 'points']);
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /expected --facets, --stats or both, found neither/);
});

it('--group-by shows the best matches of each value', async () => {
  const args = ['query', 'points', '--vector', '[1,0]', '--group-by', 'even'];
  assert.equal(
    await stdoutOf([...args, '--group-size', '2', '--no-metadata']),
    '#    score  id   group\n' +
      '1  11.0000  p11  false\n2   9.0000  p9   false\n3  10.0000  p10  true\n4   8.0000  p8   true\n',
  );
  const pages = await stdoutOf([...args, '--limit', '1', '--all', '--json']);
  const groups = pages
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).group);
  assert.deepEqual(groups, [false, true]);
});

it('collections schema shows the metadata fields with types and ranges', async () => {
  const { collections, collection } = createClient({ baseUrl: server.url });
  await collections.create({ id: 'varied', dimension: 1 });
  await collection('varied').upsert([
    { id: 'a', values: [1], metadata: { price: 3, tags: ['x', 1], of: { lang: 'en' } } },
    { id: 'b', values: [1], metadata: { price: null, tags: [] } },
  ]);
  assert.equal(
    await stdoutOf(['collections', 'schema', 'varied']),
    'path     vectors  types                      distinct  min  max\n' +
      'of             1  object                            0\n' +
      'of.lang        1  string                            1\n' +
      'price          2  null, number                      1    3    3\n' +
      'tags           2  array of number or string         2    1    1\n',
  );
});

it('--positive and --negative query by examples, and --mmr diversifies', async () => {
  const idsOf = async (...args: string[]) => {
    const text = await stdoutOf(['query', 'points', '-k', '3', '--json', ...args]);
    return (JSON.parse(text) as { matches: { id: string }[] }).matches.map(({ id }) => id);
  };
  assert.deepEqual(await idsOf('--positive', 'p2,p3', '--strategy', 'sum_scores'), [
    'p11',
    'p10',
    'p9',
  ]);
  assert.deepEqual(await idsOf('--positive', 'p2', '--negative', 'p7'), ['p0', 'p1', 'p3']);
  assert.deepEqual(await idsOf('--id', 'p2', '--mmr', '1', '--mmr-candidates', '5'), [
    'p11',
    'p10',
    'p9',
  ]);
  const strategy = await sagitta(['query', 'points', '--id', 'p1', '--strategy', 'best_score']);
  assert.equal(strategy.code, 2);
  assert.match(strategy.stderr, /--strategy requires --positive or --negative/);
  const candidates = await sagitta(['query', 'points', '--id', 'p1', '--mmr-candidates', '5']);
  assert.match(candidates.stderr, /--mmr-candidates requires --mmr/);
});
