// `sagitta query --file`, with and without `--recall`, against a real server.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createClient } from '@sagitta/client';
import { Field, List, Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow';
import { serverWithPoints } from '../support/shared-server.js';
import { type CommandOptions, type CommandResult, makeFolder, run } from './command.js';

let url: string;
let folder: Awaited<ReturnType<typeof makeFolder>>;

before(async () => {
  url = await serverWithPoints();
  folder = await makeFolder();
});
after(() => folder.remove());

function sagitta(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return run(args, { ...options, env: { SAGITTA_URL: url, ...options.env } });
}

async function stdoutOf(args: readonly string[], options?: CommandOptions): Promise<string> {
  const { code, stdout, stderr } = await sagitta(args, options);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  return stdout;
}

describe('query --file --recall', () => {
  const path = (name: string) => join(folder.path, name);
  const ask = () => ['query', 'points', '--file', path('asked.ndjson'), '-k', '3'];
  const recallOf = async (name: string): Promise<number> => {
    const { stdout, stderr, code } = await sagitta([...ask(), '--recall', path(name), '--json']);
    assert.equal(code, 0, stderr);
    return (JSON.parse(stdout) as { recall: number }).recall;
  };
  before(() =>
    writeFile(path('asked.ndjson'), '{"values":[1,0]}\n{"values":[0,1]}\n{"values":[-1,0]}\n'),
  );

  it('--recall grades text ids from every format that query --file writes', async () => {
    for (const extension of ['ndjson', 'csv', 'arrow', 'arrows', 'parquet']) {
      const found = await sagitta([...ask(), '-o', path(`found.${extension}`)]);
      assert.equal(found.code, 0, found.stderr);
      assert.equal(await recallOf(`found.${extension}`), 1, extension);
    }
  });

  it('--recall counts a query without rows in a CSV file as one without results', async () => {
    const { stdout } = await sagitta([...ask(), '--format', 'csv']);
    const lines = stdout.trimEnd().split('\n');
    const rowsOf = (query: number) => lines.filter((line) => line.startsWith(`${query},`));
    await writeFile(path('gap.csv'), [lines[0], ...rowsOf(0), ...rowsOf(2)].join('\n'));
    await writeFile(path('end.csv'), [lines[0], ...rowsOf(0), ...rowsOf(1)].join('\n'));
    for (const name of ['gap.csv', 'end.csv']) assert.equal(await recallOf(name), 0.666667);
  });

  it('--recall reads lists of ids from NDJSON, bare or in an object', async () => {
    const ids = ['p11', 'p10', 'p9'];
    const others = ['p0', 'p1', 'p2'];
    for (const list of [ids, { ids }, { neighbors: ids }, { matches: ids.map((id) => ({ id })) }]) {
      const text = [list, list, { ids: [...others, 'p3'] }].map((each) => JSON.stringify(each));
      await writeFile(path('lists.ndjson'), text.join('\n'));
      assert.ok((await recallOf('lists.ndjson')) > 0.6, JSON.stringify(list));
    }
  });

  it('--recall counts missing ids against k, and ids that repeat once', async () => {
    // p0 and p1 are not among the three nearest of the first query, and recall divides by k, not by the number of ids.
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
  });

  it('--recall reports when all lists are shorter than k', async () => {
    await writeFile(path('short.ndjson'), '["p11"]\n["p11"]\n[]\n');
    const short = await sagitta([...ask(), '--recall', path('short.ndjson')]);
    assert.match(short.stderr, /no query has more than 1 ids; the others of 3 \(--top-k\) count/);
    assert.match(short.stdout, /^recall@3: 0\.2222 \(3 queries\)$/m);
  });

  it('--recall refuses a file of results that does not fit the queries and names the place', async () => {
    for (const [name, text, message] of [
      [
        'x.ndjson',
        '{"a":1}',
        /x\.ndjson:1: found \{"a":1\}, expected matches, ids or a list of ids/,
      ],
      ['x.csv', 'query,id\n0,a\n', /found the columns query, id; expected query_index and id/],
      [
        'x.csv',
        'query_index,id\n1,a\n0,a\n',
        /found query_index 0 after 1, expected rows in the order/,
      ],
      ['x.ndjson', '["a"]\n', /found 1 results, but .* has more queries/],
      ['x.ndjson', '[]\n[]\n[]\n["a"]\n', /found more results than the 3 queries of .*asked/],
      [
        'x.ndjson',
        '["a"]\n["b"]\n["a"]\n',
        /no result is correct, and .* none of the first ids \(a\)/,
      ],
      ['x.ndjson', '[null]\n', /x\.ndjson:1: found the id null, expected a string or an integer/],
      ['x.ndjson', '{"query_index":1,"ids":[]}\n', /:1: found query_index 1, expected 0/],
      ['x.ndjson', '[\n', /x\.ndjson:1: invalid JSON/],
      [
        'x.csv',
        'query_index,id\nx,a\n',
        /x\.csv:2: found the query_index "x", expected an integer/,
      ],
      ['x.csv', 'query_index,id\n0,\n', /x\.csv:2: found the id "", expected a string/],
      ['x.csv', 'query_index,id\n0,a,b\n', /x\.csv:2: found 3 cells/],
      ['x.csv', 'query_index,id\n7,p0\n', /found more results than the 3 queries/],
      [
        'x.csv',
        'query_index,rank,id\n0,1,a\n0,3,b\n0,2,c\n',
        /x\.csv:4: found rank 2 after .*, expected the matches of a query best first/,
      ],
    ] as const) {
      await writeFile(path(name), text);
      const { stderr, code } = await sagitta([...ask(), '--recall', path(name)]);
      assert.equal(code, 1);
      assert.match(stderr, message);
    }
  });

  it('--recall reads lists of ids from the columns of tables', async () => {
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

  it('--recall reads a filter from stdin once for all requests', async () => {
    const { collections, collection } = createClient({ baseUrl: url });
    await collections.create({ id: 'numbered', dimension: 1, metric: 'dot' });
    const metadata = (n: number) => ({ even: n % 2 === 0 });
    const rows = [1, 2, 3].map((n) => ({ id: String(n), values: [n], metadata: metadata(n) }));
    await collection('numbered').upsert(rows);
    // More queries than fit into one request. The expected match is the largest even number.
    const count = 501;
    const records = (item: readonly number[]) =>
      Buffer.concat(Array(count).fill(Buffer.from(item)));
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
});

describe('query --file', () => {
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
    assert.equal(title, 'query_index,query_id,rank,id,score');
    assert.deepEqual(
      rows.map((row) => row.split(',').slice(0, 4).join()),
      ['0,"q1",1,"p11"', '1,"q2",1,"p0"'],
    );
    await writeFile(path('some.ndjson'), '{"id":"a","values":[1,0]}\n{"values":[-1,0]}\n');
    const { code, stderr } = await ask('some.ndjson');
    assert.equal(code, 1);
    assert.match(stderr, /some\.ndjson:2: the query has no id, but the first query .* has one/);
    await writeFile(path('asked.csv'), 'values\n"1,0"\n"-1,0"\n');
    const without = await ask('asked.csv', '--format', 'csv');
    assert.match(without.stdout, /^query_index,rank,id,score$/m);
    await writeFile(path('none.ndjson'), '\n');
    assert.match((await ask('none.ndjson')).stderr, /none\.ndjson: the file contains no vectors/);
  });

  it('--file searches the named vector of --using', async () => {
    const { collections, collection } = createClient({ baseUrl: url });
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
});
