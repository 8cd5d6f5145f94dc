// `sagitta import` against a real server: formats, columns, the order of writes, and error messages.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type Client, createClient, type StoredVector } from '@sagitta/client';
import {
  Bool,
  DateMillisecond,
  Dictionary,
  Field,
  FixedSizeList,
  Float32,
  Float64,
  Int32,
  Int64,
  List,
  Struct,
  Table,
  TimestampMillisecond,
  tableToIPC,
  Utf8,
  type Vector,
  vectorFromArray,
} from 'apache-arrow';
import { importFiles as importFilesHere } from '../../src/cli/import/import-files.js';
import { ImportJournal } from '../../src/cli/import/journal.js';
import { emptyServer } from '../support/shared-server.js';
import { type CommandResult, makeFolder, run } from './command.js';

let url: string;
let client: Client;
let folder: Awaited<ReturnType<typeof makeFolder>>;

before(async () => {
  url = await emptyServer();
  client = createClient({ baseUrl: url });
  folder = await makeFolder();
});
after(async () => {
  await folder.remove();
});

async function file(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder.path, name);
  await writeFile(path, content);
  return path;
}

function importFiles(...args: string[]): Promise<CommandResult> {
  const env = { SAGITTA_URL: url, XDG_STATE_HOME: folder.path };
  return run(['import', ...args], { env, cwd: folder.path });
}

async function imported(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await importFiles(...args, '--json');
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '');
  return JSON.parse(stdout) as Record<string, unknown>;
}

async function read(collection: string, id: string): Promise<StoredVector> {
  const { etag: _, ...vector } = await client.collection(collection).get(id);
  return vector;
}

async function metadataOf(collection: string, id: string): Promise<unknown> {
  return (JSON.parse(await metadataText(collection, id)) as { metadata: unknown }).metadata;
}

async function metadataText(collection: string, id: string): Promise<string> {
  const path = `/v1/collections/${collection}/vectors/${id}?include_values=false`;
  const response = await fetch(url + path);
  assert.equal(response.status, 200, id);
  return response.text();
}

const ROWS = [
  '{"id":"a","values":[1,2],"metadata":{"n":12345678901234567890,"x":1.0}}',
  '{"id":"b","values":[3,4]}',
  '{"id":"c","values":[5,6],"metadata":{"tags":["x"]}}',
];

it('NDJSON creates the collection and keeps the spelling of metadata', async () => {
  const path = await file('rows.ndjson', ROWS.join('\n'));
  const result = await imported(path, '-c', 'plain', '--metric', 'dot', '--batch', '2');
  const { seconds, ...rest } = result;
  assert.equal(typeof seconds, 'number');
  assert.deepEqual(rest, {
    collection: 'plain',
    created: true,
    rows: 3,
    inserted: 3,
    updated: 0,
    sequence: 2,
    resumed_rows: 0,
  });
  const { metric, dimension } = await client.collections.get('plain');
  assert.deepEqual({ metric, dimension }, { metric: 'dot', dimension: 2 });
  assert.match(await metadataText('plain', 'a'), /\{"n":12345678901234567890,"x":1\.0\}/);
  assert.deepEqual(await read('plain', 'c'), {
    id: 'c',
    values: [5, 6],
    metadata: { tags: ['x'] },
  });
});

it('reads gzip files, and several files one after another', async () => {
  const first = await file('first.gz', gzipSync(ROWS.slice(0, 2).join('\n')));
  const second = await file('second.ndjson', `${ROWS[2]!}\n`);
  assert.equal((await imported(first, second, '-c', 'packed')).rows, 3);
  const again = await imported(first, second, '-c', 'packed');
  assert.deepEqual([again.created, again.inserted, again.updated], [false, 0, 3]);
});

it('the last of several rows with one id wins, in one write or in several', async () => {
  const lines: string[] = [];
  for (let row = 0; row < 400; row++) lines.push(`{"id":"r${row % 7}","values":[${row},1]}`);
  const path = await file('repeated.ndjson', lines.join('\n'));
  const result = await imported(path, '-c', 'repeated', '--batch', '5');
  assert.deepEqual([result.rows, result.inserted], [400, 7]);
  for (let id = 0; id < 7; id++) {
    const last = 399 - ((399 - id) % 7);
    assert.deepEqual((await read('repeated', `r${id}`)).values, [last, 1]);
  }
});

it('import - reads stdin', async () => {
  const input = '{"id":"a","values":[1,2]}\n{"id":"b","values":[3,4]}\n';
  const env = { SAGITTA_URL: url, XDG_STATE_HOME: folder.path };
  const { stdout, stderr } = await run(['import', '-', '-c', 'piped', '--json'], { input, env });
  assert.equal((JSON.parse(stdout) as { rows: number }).rows, 2, stderr);
  assert.equal((await client.collections.get('piped')).vector_count, 2);
});

it('rows without an id get a generated one, unless ids are required', async () => {
  const path = await file('anonymous.ndjson', '{"values":[1,2]}\n{"values":[3,4]}\n');
  assert.equal((await imported(path, '-c', 'anonymous')).inserted, 2);
  const { code, stderr } = await importFiles(path, '-c', 'anonymous', '--id-field', 'id');
  assert.equal(code, 1);
  assert.match(stderr, /anonymous\.ndjson:1: the member "id" \(the id\) is missing/);
});

/** Every type that metadata can hold, with a null in each column. */
function arrowTable(): Table {
  const moment = new Date('2026-11-21T08:00:00.000Z');
  const tags = new List(new Field('item', new Utf8(), true));
  const place = new Struct([
    new Field('lat', new Float64(), true),
    new Field('name', new Utf8(), true),
  ]);
  const columns: Record<string, Vector> = {
    key: vectorFromArray([7n, 8n], new Int64()),
    embedding: vectorFromArray(
      [
        [0.1, 2],
        [3, 4],
      ],
      new FixedSizeList(2, new Field('item', new Float32(), false)),
    ),
    title: vectorFromArray(['café "x"', null], new Utf8()),
    kind: vectorFromArray(['noun', null], new Dictionary(new Utf8(), new Int32())),
    big: vectorFromArray([2n ** 62n, null], new Int64()),
    year: vectorFromArray([2024, null], new Int32()),
    score: vectorFromArray([0.1, null], new Float64()),
    open: vectorFromArray([true, null], new Bool()),
    day: vectorFromArray([moment, null], new DateMillisecond()),
    at: vectorFromArray([moment.getTime(), null], new TimestampMillisecond()),
    tags: vectorFromArray([['a', null], null], tags),
    place: vectorFromArray([{ lat: 1.5, name: null }, null], place),
  };
  return new Table(columns);
}

const METADATA = {
  title: 'café "x"',
  kind: 'noun',
  big: 2 ** 62,
  year: 2024,
  score: 0.1,
  open: true,
  day: '2026-11-21T08:00:00.000',
  at: '2026-11-21T08:00:00.000',
  tags: ['a', null],
  place: { lat: 1.5, name: null },
};

for (const format of ['file', 'stream'] as const) {
  it(`the columns of an Arrow ${format} become metadata`, async () => {
    const path = await file(`rows-${format}.arrow`, tableToIPC(arrowTable(), format));
    const collection = `arrow-${format}`;
    const fields = ['--id-field', 'key', '--values-field', 'embedding'];
    assert.equal((await imported(path, '-c', collection, ...fields)).rows, 2);
    assert.deepEqual(await read(collection, '7'), {
      id: '7',
      values: [0.1, 2],
      metadata: METADATA,
    });
    const nothing = Object.keys(METADATA).map((name) => [name, null]);
    assert.deepEqual((await read(collection, '8')).metadata, Object.fromEntries(nothing));
    assert.match(await metadataText(collection, '7'), /"big":4611686018427387904,/);
  });
}

it('an Arrow stream can be gzip-compressed, and columns can be selected', async () => {
  const path = await file('rows.arrows.gz', gzipSync(tableToIPC(arrowTable(), 'stream')));
  const args = ['--id-field', 'key', '--values-field', 'embedding', '--fields', 'year,title'];
  await imported(path, '-c', 'chosen', ...args);
  assert.deepEqual((await read('chosen', '7')).metadata, { year: 2024, title: 'café "x"' });
});

it('an Arrow column of JSON text becomes metadata with its spelling', async () => {
  const table = new Table({
    id: vectorFromArray(['a'], new Utf8()),
    values: vectorFromArray([[1, 2]], new List(new Field('item', new Float64(), false))),
    metadata: vectorFromArray(['{"x": 1.0}'], new Utf8()),
  });
  await imported(await file('json.arrow', tableToIPC(table, 'file')), '-c', 'json');
  assert.match(await metadataText('json', 'a'), /"metadata":\{"x": 1\.0\}/);
});

it('imports the sample data of the repository', async () => {
  const path = join(import.meta.dirname, '../../../examples/data/wordnet.arrow');
  assert.equal((await imported(path, '-c', 'wordnet')).rows, 4_200);
  const dolphin = await read('wordnet', 'n02069974');
  assert.equal(dolphin.values?.length, 256);
  const { gloss: _, ...metadata } = dolphin.metadata!;
  assert.deepEqual(metadata, {
    lemma: 'Atlantic bottlenose dolphin',
    words: ['Atlantic bottlenose dolphin', 'Tursiops truncatus'],
    pos: 'noun',
    category: 'noun.animal',
    word_count: 2,
    pointers: 1,
  });
});

function listsOf(type: Float32 | Int32, values: unknown[]): Vector {
  return vectorFromArray(values, new List(new Field('item', type, true)));
}

const texts = (...values: (string | null)[]) => vectorFromArray(values, new Utf8());
const arrow = (columns: Record<string, Vector>) => tableToIPC(new Table(columns), 'file');
const pair = () => listsOf(new Float32(), [[1, 2]]);

const BAD: readonly [string, string | Uint8Array, RegExp][] = [
  ['a bad line', `${ROWS[0]}\n{"values":[1,null]}`, /:2: values\[1\] is null, expected a number/],
  ['another dimension', `${ROWS[0]}\n{"values":[1]}`, /:2: found 1 values, expected 2 as in /],
  [
    'a row that the service refuses',
    `${ROWS[0]}\n{"id":"b","values":[1,2],"metadata":{"$a":1}}`,
    /:2: metadata/,
  ],
  ['a torn gzip', gzipSync(ROWS.join('\n')).subarray(0, 40), /cannot be decompressed/],
  [
    'an Arrow file in gzip',
    gzipSync(arrow({ values: pair() })),
    /Arrow IPC file \(Feather\) cannot be read from gzip/,
  ],
  ['a torn Arrow file', arrow({ values: pair() }).subarray(0, 200), /invalid Arrow IPC/],
  [
    'no column of values',
    arrow({ id: texts('a') }),
    /no column is named values, vector or embedding \(columns: id\)/,
  ],
  [
    'text that is no vector',
    arrow({ values: texts('[1, x]') }),
    /row 1: value 2 is "x", expected a float32 number/,
  ],
  [
    'a null among values',
    arrow({ values: listsOf(new Float32(), [[1, null]]) }),
    /row 1: values: Element 1 is null/,
  ],
  [
    'a null vector',
    arrow({ values: listsOf(new Float32(), [[1, 2], null]) }),
    /row 2: values: Expected a list of numbers; found null/,
  ],
  [
    'a null id',
    arrow({ id: texts('a', null), values: listsOf(new Float32(), [[1], [2]]) }),
    /row 2: id: Expected text, an integer or a UUID; found null/,
  ],
  [
    'a number that JSON cannot say',
    arrow({ values: pair(), x: vectorFromArray([Number.NaN], new Float64()) }),
    /row 1: metadata: .* in the column "x"; found NaN/,
  ],
  [
    'a date beyond the calendar',
    arrow({ values: pair(), x: vectorFromArray([9e15], new TimestampMillisecond()) }),
    /row 1: metadata: .* found a timestamp out of range/,
  ],
  [
    'a name in metadata and as a column',
    arrow({ values: pair(), metadata: texts('{"x":1}'), x: texts('y') }),
    /row 1: metadata: .*"?x"?/,
  ],
  [
    'metadata that is no object',
    arrow({ values: pair(), metadata: texts('[]') }),
    /row 1: metadata: Metadata is an object; found an array/,
  ],
];

for (const [name, content, message] of BAD) {
  // Runs in this process, since starting one per case would take most of the time.
  it(`${name} fails the import with its location, and nothing of its write is kept`, async () => {
    const collection = `bad-${name.replaceAll(' ', '-')}`;
    const importing = importFilesHere(client, [await file('bad', content)], {
      collection,
      batch: 500,
      openJournal: async () => ImportJournal.none(),
      createProgress: () => undefined,
      interruption: new AbortController().signal,
    });
    await assert.rejects(importing, (error: Error) => {
      assert.ok(['CliError', 'ReadError'].includes(error.name), error.stack);
      assert.match(error.message, message);
      return true;
    });
    const found = await client.collections.list({ limit: 1000 });
    const record = found.collections.find(({ id }) => id === collection);
    assert.equal(record, undefined);
  });
}

it('a failed import deletes only a collection that it created and nobody wrote to', async () => {
  const path = await file('bad-end.ndjson', `${ROWS[0]}\n{"values":[1,null]}`);
  const failing = (collection: string, onMade: () => Promise<unknown>): Promise<unknown> =>
    importFilesHere(client, [path], {
      collection,
      batch: 1,
      openJournal: async () => {
        await onMade();
        return ImportJournal.none();
      },
      createProgress: () => undefined,
      interruption: new AbortController().signal,
    });
  const exists = async (id: string) =>
    (await client.collections.list({ limit: 1000 })).collections.some((one) => one.id === id);
  const expected = { name: 'ReadError', message: /bad-end\.ndjson:2: values\[1\] is null/ };
  await assert.rejects(
    failing('unused', async () => assert.ok(await exists('unused'))),
    expected,
  );
  assert.equal(await exists('unused'), false);
  await client.collections.create({ id: 'before', dimension: 2 });
  await assert.rejects(
    failing('before', async () => {}),
    expected,
  );
  assert.equal(await exists('before'), true);
  const { collection } = client;
  const write = () => collection('used').upsert([{ id: 'other', values: [1, 2] }]);
  await assert.rejects(failing('used', write), expected);
  assert.equal((await client.collections.get('used')).vector_count, 1);
});

it('an invalid file is reported in one line, with exit code 1', async () => {
  const { code, stdout, stderr } = await importFiles(
    await file('bad', `${ROWS[0]}\n{"values":[1,null]}`),
    '-c',
    'bad',
  );
  assert.equal(code, 1);
  assert.equal(stdout, '');
  assert.match(stderr, /bad:2: values\[1\] is null, expected a number/);
  assert.doesNotMatch(stderr, /\n\s+at .*\.js/);
});

it('a byte order mark at the beginning is not part of the first row', async () => {
  for (const [name, text] of [
    ['mark.ndjson', '\ufeff{"id":"a","values":[1,2]}\n'],
    ['mark.json', '\ufeff[{"id":"a","values":[1,2]}]'],
    ['mark.csv', '\ufeffid,values\na,"1,2"\n'],
    ['mark', '\ufeff{"id":"a","values":[1,2]}\n'],
  ] as const) {
    await imported(await file(name, text), '-c', `mark-${name.replace('.', '-')}`);
    assert.deepEqual((await read(`mark-${name.replace('.', '-')}`, 'a')).values, [1, 2], name);
  }
  const ids = await file('mark.ids.txt', '\ufeffa\n\ufeffb\n');
  const values = await file('mark.fbin', new Uint8Array(new Int32Array([2, 1, 1, 1]).buffer));
  await imported(values, '-c', 'mark-ids', '--ids', ids);
  for (const id of ['a', '%ef%bb%bfb']) await metadataOf('mark-ids', id);
});

it('text in a different encoding is refused with its line', async () => {
  const rows = Buffer.from('id,values,name\na,1,x\n\nb,2,caf\u00e9\n', 'latin1');
  for (const [name, bytes, line] of [
    ['latin.csv', rows, 4],
    ['latin.ids.csv', Buffer.from('id,values,caf\u00e9\na,1,x\n', 'latin1'), 1],
    ['latin.ndjson', Buffer.from('{"values":[1]}\n{"id":"\u00e9","values":[1]}', 'latin1'), 2],
  ] as const) {
    const { code, stderr } = await importFiles(await file(name, bytes), '-c', 'latin');
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`${name}:${line}: invalid UTF-8; convert the file`));
  }
});

it('an import without rows fails', async () => {
  const none = await file('none.ndjson', '\n');
  const header = await file('header.csv', 'id,values\n');
  const { code, stdout, stderr } = await importFiles(none, header, '-c', 'none');
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /none\.ndjson, .*header\.csv: found no rows, expected at least one/);
  const rows = await file('one.ndjson', ROWS[0]!);
  assert.equal((await imported(none, rows, header, '-c', 'one')).rows, 1);
});

it('a field that no row has is an error that suggests the one that was meant', async () => {
  const rows = await file('fields.ndjson', '{"id":"a","values":[1]}\n{"values":[1],"Year":1}\n');
  const plain = await file('plain.ndjson', '{"id":"a","values":[1]}\n');
  const table = await file('fields.csv', 'id,values,Year\na,1,2024\n');
  for (const [path, option, name, message] of [
    [plain, '--exclude', 'vlues', /: no member "vlues", which --exclude names .*"values"\?$/m],
    [rows, '--exclude', 'year', /:2: unknown member "Year", .* leave members out with --exclude/m],
    [rows, '--fields', 'Yaer', /: no member "Yaer", which --fields names .*mean "Year"\?$/m],
    [rows, '--id-field', 'Id', /:1: the member "Id" \(the id\) is missing; did you mean "id"\?$/m],
    [table, '--exclude', 'nope', /no column "nope".*\(columns: id, values, Year\)$/m],
    [table, '--id-field', '_id', /no column "_id", which --id-field .*; did you mean "id"\?$/m],
    [table, '--values-field', 'valuse', /no column "valuse", which --values-field .*"values"\?$/m],
    [table, '--fields', 'year', /no column "year", which --fields names .*"Year"\?$/m],
  ] as const) {
    const { code, stderr } = await importFiles(path, '-c', 'fields', option, name);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  }
  assert.equal((await imported(rows, '-c', 'fields', '--exclude', 'Year')).rows, 2);
});

it('reports how many rows were written before a row that the server rejects', async () => {
  const path = await file('late.ndjson', `${ROWS.join('\n')}\n{"id":"","values":[1,2]}`);
  const { stderr } = await importFiles(path, '-c', 'late', '--batch', '1');
  assert.match(stderr, /late\.ndjson:4: id: /);
  assert.match(
    stderr,
    /\n {2}3 rows were written before the error; importing the corrected file replaces them/,
  );
  assert.equal((await client.collections.get('late')).vector_count, 3);
});

it('rejects a metric other than that of the collection', async () => {
  await client.collections.create({ id: 'cosine', dimension: 2 });
  const path = await file('metric.ndjson', ROWS[0]!);
  const { code, stderr } = await importFiles(path, '-c', 'cosine', '--metric', 'dot');
  assert.equal(code, 2);
  assert.match(stderr, /--metric is dot, but collection cosine uses cosine/);
});

it('rejects missing files and directories', async () => {
  for (const [path, message] of [
    ['missing.ndjson', /file not found: .*missing\.ndjson/],
    [folder.path, /is a directory, expected a file/],
  ] as const) {
    const { code, stderr } = await importFiles(path, '-c', 'none');
    assert.equal(code, 1);
    assert.match(stderr, message);
  }
});

it('rejects an option that does not apply to the format', async () => {
  const path = await file('bare.fvecs', '');
  for (const [given, message] of [
    [['--id-field', 'key'], /--id-field does not apply to float32 vectors/],
    [['--fields', 'year'], /--fields does not apply to float32 vectors/],
    [['--dataset', 'train'], /--dataset does not apply/],
  ] as const) {
    const { code, stderr } = await importFiles(path, '-c', 'none', ...given);
    assert.equal(code, 2);
    assert.match(stderr, message);
  }
});

it('an unreachable server is reported after few attempts', async (t) => {
  const path = await file('early.ndjson', ROWS.join('\n'));
  let attemptCount = 0;
  const broken = createServer((socket) => {
    attemptCount++;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  t.after(() => broken.close());
  await once(broken, 'listening');
  const url = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
  const { code, stderr } = await importFiles(path, '-c', 'none', '--url', url);
  assert.equal(code, 3);
  assert.match(stderr, /cannot reach .*Is the server running/);
  // A connection lost in the middle of the import gets nine attempts.
  assert.equal(attemptCount, 3);
});

it('reports the ids that it generated for rows without one', async () => {
  const rows = '{"values":[1,2]}\n{"id":"a","values":[3,4]}\n{"values":[5,6]}\n';
  const path = await file('no-ids.ndjson', rows);
  const { stdout } = await importFiles(path, '-c', 'no-ids');
  const [, first, last] =
    /^2 rows without an id got new ids, from (\S+) to (\S+); if .* --id-field\.$/m.exec(stdout)!;
  assert.deepEqual((await read('no-ids', first!)).values, [1, 2]);
  assert.deepEqual((await read('no-ids', last!)).values, [5, 6]);
  const { generated_ids } = await imported(path, '-c', 'no-ids');
  assert.equal((generated_ids as { count: number }).count, 2);
  assert.equal('generated_ids' in (await imported(path, '-c', 'no-ids', '--row-ids')), false);
});

it('--nan null applies to the metadata of plain vectors, and to nothing without metadata', async () => {
  const path = await file('nan.fbin', new Uint8Array(new Int32Array([1, 1, 1]).buffer));
  const metadata = await file('nan.metadata.ndjson', '{"id":"a","x":NaN}\n');
  const args = [path, '-c', 'nan', '--nan', 'null'];
  await imported(...args, '--metadata', metadata);
  assert.deepEqual(await metadataOf('nan', 'a'), { x: null });
  const { code, stderr } = await importFiles(...args);
  assert.equal(code, 2);
  assert.match(stderr, /--nan does not apply to float32 vectors/);
});

it('reads a file with tabs and decimal commas under any name', async () => {
  const path = await file('tabs.txt', 'id\tvalues\tn\na\t0,5 1,25\t2,5\n');
  const args = [path, '-c', 'tabs', '--format', 'csv', '--decimal', ','];
  const { code, stderr } = await importFiles(...args);
  assert.equal(code, 2);
  assert.match(stderr, /tabs\.txt:1: found the single column .*; if .* use --delimiter '\\t'$/m);
  await imported(...args, '--delimiter', '\\t');
  assert.deepEqual(await read('tabs', 'a'), { id: 'a', values: [0.5, 1.25], metadata: { n: 2.5 } });
});

it('reports a column that is probably an index', async () => {
  const path = await file('index.csv', ',id,values\n0,a,1 2\n');
  const { stdout } = await importFiles(path, '-c', 'index');
  assert.match(stdout, /^The column "" is probably an index .*; --no-index leaves it out\.$/m);
  assert.deepEqual((await imported(path, '-c', 'index')).index_columns, ['']);
  assert.deepEqual(await metadataOf('index', 'a'), { '': 0 });
  assert.equal('index_columns' in (await imported(path, '-c', 'index', '--no-index')), false);
  assert.deepEqual(await metadataOf('index', 'a'), {});
});

it('prints progress lines on stderr and the result on stdout', async () => {
  const path = await file('progress.ndjson', ROWS.join('\n'));
  const { stdout, stderr } = await importFiles(path, '-c', 'progress');
  assert.match(stdout, /^Imported 3 rows into progress in [\d.]+ s \(3 new, 0 replaced\)\.\n$/);
  assert.match(stderr, /^progress: 100 % {2}3 rows {2}\d+ rows?\/s {2}[\d.]+ MB\/s\n$/);
});

const POSTERS = [
  { id: 'a', values: [1, 2], vectors: { title: [1, 2, 3], image: [4] }, metadata: { n: 1 } },
  { id: 'b', values: [3, 4], vectors: { title: [5, 6, 7] }, metadata: { n: 2 } },
  { id: 'c', values: [5, 6], vectors: {}, metadata: { n: 3 } },
];
const POSTER_VECTORS = { title: { dimension: 3 }, image: { dimension: 1 } };

it('named vectors come from NDJSON, Arrow and Parquet', async () => {
  const lines = POSTERS.map((row) => `${JSON.stringify(row)}\n`).join('');
  const sources: string[] = [await file('posters.ndjson', lines)];
  for (const [at, format] of (['arrow', 'parquet'] as const).entries()) {
    const id = `posters-${at}`;
    await client.collections.create({ id, dimension: 2, vectors: POSTER_VECTORS });
    await imported(sources[0]!, '--collection', id);
    const { body } = await client.collection(id).exportStream({ format });
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    const name = `posters.${format === 'arrow' ? 'arrows' : format}`;
    sources.push(await file(name, Buffer.concat(chunks)));
  }
  for (const [at, source] of sources.entries()) {
    const id = `from-${at}`;
    await client.collections.create({ id, dimension: 2, vectors: POSTER_VECTORS });
    assert.equal((await imported(source, '--collection', id)).rows, 3);
    for (const row of POSTERS) assert.deepEqual(await read(id, row.id), row, source);
  }
  // One upload holds files with and without named vectors.
  await client.collections.create({ id: 'mixed', dimension: 2, vectors: POSTER_VECTORS });
  const csv = await file('plain.csv', 'id,values\nd,"[7,8]"\n');
  assert.equal((await imported(sources[0]!, csv, '--collection', 'mixed')).rows, 4);
  assert.deepEqual((await read('mixed', 'a')).vectors, POSTERS[0]!.vectors);
  assert.deepEqual((await read('mixed', 'd')).vectors, {});
});

it('rows of a collection without unnamed vectors need none', async () => {
  const rows = POSTERS.map(({ values: _, ...row }) => row);
  const path = await file('bare.ndjson', rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  await client.collections.create({ id: 'bare', vectors: POSTER_VECTORS });
  assert.equal((await imported(path, '--collection', 'bare')).rows, 3);
  for (const row of rows) assert.deepEqual(await read('bare', row.id), row);
  const lyrics = await file('lyrics.ndjson', '{"id":"l","metadata":{"title":"Songs"}}\n');
  await client.collections.create({ id: 'lyrics', text: { fields: ['title'] } });
  assert.equal((await imported(lyrics, '--collection', 'lyrics')).rows, 1);
  const wrong = await file('wrong.ndjson', '{"id":"l","values":[1,2]}\n');
  const { code, stderr } = await importFiles(wrong, '--collection', 'lyrics');
  assert.equal(code, 1);
  assert.match(stderr, /wrong.ndjson:1: collection lyrics has no unnamed vectors/);
});

it('a named vector that does not fit is refused, with its line', async () => {
  await client.collections.create({ id: 'strict', dimension: 2, vectors: POSTER_VECTORS });
  for (const [vectors, message] of [
    ['{"title":[1]}', /bad.ndjson:1: vectors.title has 1 values, expected 3/],
    ['{"sound":[1]}', /vectors.sound is not a vector of the collection, expected title, image/],
    ['[1]', /vectors is \[1\], expected an object of vectors by name/],
  ] as const) {
    const path = await file('bad.ndjson', `{"id":"a","values":[1,2],"vectors":${vectors}}\n`);
    const { code, stderr } = await importFiles(path, '--collection', 'strict');
    assert.equal(code, 1);
    assert.match(stderr, message);
  }
});

const SUMMARIES = { summary: { dimension: 2, metric: 'dot' } } as const;

/** A collection with rows that lack the named vector that was added to it. */
async function withSummary(id: string): Promise<void> {
  await client.collections.create({ id, dimension: 2, metric: 'dot' });
  await imported(await file('rows.ndjson', ROWS.join('\n')), '-c', id);
  await client.collections.update(id, { vectors: SUMMARIES });
}

it('an array and ids fill a named vector, and change nothing else', async () => {
  await withSummary('filled');
  const array = await file(
    'summaries.npy',
    npyOf([
      [1, 0],
      [0, 1],
    ]),
  );
  const ids = await file('ids.txt', 'c\na\n');
  const command = [array, '-c', 'filled', '--ids', ids, '--vector-name', 'summary'];
  const { code, stdout, stderr } = await importFiles(...command, '--mode', 'patch');
  assert.equal(code, 0, stderr);
  assert.match(stdout, /Imported 2 rows into filled in .* \(0 new, 2 changed\)/);
  assert.deepEqual((await read('filled', 'a')).vectors, { summary: [0, 1] });
  assert.equal(
    await metadataText('filled', 'a'),
    '{"id":"a","metadata":{"n":12345678901234567890,"x":1.0}}',
  );
  assert.deepEqual((await read('filled', 'a')).values, [1, 2]);
  assert.deepEqual((await read('filled', 'b')).vectors, {});
  assert.deepEqual((await read('filled', 'c')).vectors, { summary: [1, 0] });
});

it('files with columns of named vectors change these vectors and merge metadata', async () => {
  const patches = [
    ['p.ndjson', '{"id":"a","vectors":{"summary":[1,2]},"metadata":{"new":1,"n":null}}\n'],
    ['p.csv', 'id,vectors.summary,new,n\na,"[1,2]",1,\n'],
    ['p.parquet', null],
  ] as const;
  let parquet = Buffer.alloc(0);
  for (const [at, [name, content]] of patches.entries()) {
    const id = `patched-${at}`;
    await withSummary(id);
    const path = await file(name, content ?? parquet);
    assert.equal((await imported(path, '-c', id, '--mode', 'patch')).updated, 1);
    const { vectors, values, metadata } = await read(id, 'a');
    assert.deepEqual({ vectors, values }, { vectors: { summary: [1, 2] }, values: [1, 2] }, name);
    const { n, ...rest } = metadata as Record<string, unknown>;
    assert.deepEqual(rest, { x: 1, new: 1 }, name);
    // The Parquet file is an export of the collection after the patches.
    assert.equal(n === undefined, content !== null, name);
    const filter = { $id: 'a' };
    const { body } = await client.collection(id).exportStream({ format: 'parquet', filter });
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    parquet = Buffer.concat(chunks);
  }
});

async function rowsOf(collection: string): Promise<StoredVector[]> {
  const rows: StoredVector[] = [];
  for await (const row of client.collection(collection).exportAll()) rows.push(row);
  return rows;
}

it('an export of a collection with added vectors imports as the same data elsewhere', async () => {
  await withSummary('grown');
  await client.collection('grown').patch('b', { vectors: { summary: [3, 1] } });
  for (const format of ['ndjson', 'arrow', 'parquet'] as const) {
    const { body } = await client.collection('grown').exportStream({ format });
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    const name = format === 'arrow' ? 'grown.arrows' : `grown.${format}`;
    const path = await file(name, Buffer.concat(chunks));
    const id = `of-${format}`;
    await client.collections.create({ id, dimension: 2, metric: 'dot', vectors: SUMMARIES });
    assert.equal((await imported(path, '-c', id)).inserted, 3);
    assert.deepEqual(await rowsOf(id), await rowsOf('grown'), format);
  }
  const csv = join(folder.path, 'grown.csv');
  const args = ['export', 'grown', '-o', csv, '--url', url];
  assert.equal((await run(args, { cwd: folder.path })).code, 0);
  assert.match(await readFile(csv, 'utf8'), /^id,values,vectors.summary,metadata\n/);
  await client.collections.create({
    id: 'of-csv',
    dimension: 2,
    metric: 'dot',
    vectors: SUMMARIES,
  });
  assert.equal((await imported(csv, '-c', 'of-csv')).inserted, 3);
  assert.deepEqual(await rowsOf('of-csv'), await rowsOf('grown'));
});

it('a file of vectors creates a collection with a named vector', async () => {
  const array = await file('titles.npy', npyOf([[1, 0]]));
  const options = ['--vector-name', 'title', '--metric', 'dot', '--row-ids'];
  await imported(array, '-c', 'titles', ...options);
  const { dimension, vectors } = await client.collections.get('titles');
  assert.equal(dimension, undefined);
  assert.deepEqual(vectors, { title: { dimension: 2, metric: 'dot' } });
  assert.deepEqual((await read('titles', '0')).vectors, { title: [1, 0] });
});

it('an import that changes vectors names the row that it cannot apply', async () => {
  await withSummary('mended');
  const array = await file('mended.npy', npyOf([[1, 0, 2]]));
  const ids = await file('mended.txt', 'a\n');
  const unknown = await file(
    'unknown.ndjson',
    '{"id":"a","vectors":{"summary":[9,9]}}\n{"id":"z"}\n',
  );
  const bare = await file('bare.ndjson', '{"vectors":{"summary":[9,9]}}\n');
  const removing = await file('null.ndjson', '{"id":"a","vectors":{"summary":null}}\n');
  const mixed = await file('mixed.ndjson', '{"id":"a"}\n');
  const other = await file('other.csv', 'id,vectors.sound\na,1\n');
  const long = await file('long.csv', 'id,vectors.summary\na,1 2 3\n');
  const patch = ['-c', 'mended', '--mode', 'patch'];
  const whole = join(folder.path, 'rows.ndjson');
  for (const [args, message] of [
    [
      [array, '--ids', ids, '--vector-name', 'summary', ...patch],
      /row 1: found 3 values, but the vector summary of mended has dimension 2/,
    ],
    [
      [array, '--ids', ids, '--vector-name', 'title', ...patch],
      /has the named vectors summary; add it with: sagitta collections update mended --add-vector title:/,
    ],
    [[unknown, ...patch], /unknown.ndjson:2: id: .*"z" does not exist/],
    [[bare, ...patch], /bare.ndjson:1: found no id, which --mode patch needs/],
    [[removing, ...patch], /null.ndjson:1: vectors.summary is null, but an import does not remove/],
    [
      [mixed, whole, ...patch],
      /rows.ndjson:1: found 2 values, expected none as in the rows before/,
    ],
    [[other, ...patch], /other.csv:1: the column "vectors.sound" holds/],
    [[long, ...patch], /long.csv:2: vectors.summary has 3 values, expected 2/],
    [[unknown, '-c', 'nowhere', '--mode', 'patch'], /no collection with the id "nowhere"/],
  ] as const) {
    const { code, stderr } = await importFiles(...args);
    assert.notEqual(code, 0, stderr);
    assert.match(stderr, message);
  }
  assert.deepEqual((await read('mended', 'a')).vectors, {});
});

/** A .npy file of float32 values, [rows, dimension]. */
function npyOf(rows: readonly (readonly number[])[]): Uint8Array {
  const shape = `(${rows.length}, ${rows[0]!.length})`;
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': ${shape}, }`;
  const header = `${text.padEnd(117)}\n`;
  const start = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, header.length, 0]);
  return Buffer.concat([
    start,
    Buffer.from(header),
    Buffer.from(Float32Array.from(rows.flat()).buffer),
  ]);
}

it('--embed makes vectors of a field, in a new collection with the built-in model', async () => {
  const texts = ['Kittens chase mice.', 'Shares fell on Tuesday.'];
  const path = await file('texts.csv', `id,text\na,${texts[0]}\nb,${texts[1]}\n`);
  const { created, rows } = await imported(path, '-c', 'texts', '--embed', 'text');
  assert.deepEqual({ created, rows }, { created: true, rows: 2 });
  const record = await client.collections.get('texts');
  assert.equal(record.embed?.endpoint, 'builtin');
  assert.deepEqual(record.text?.fields, ['text']);
  const { matches } = await client
    .collection('texts')
    .query({ embed: 'a young cat hunts', top_k: 1 });
  assert.equal(matches[0]?.id, 'a');
  assert.deepEqual(await metadataOf('texts', 'a'), { text: texts[0] });
});

it('--embed needs a text in every row, no vectors, and a collection with a model', async () => {
  const expectError = async (expected: RegExp, ...args: string[]) => {
    const { code, stderr } = await importFiles(...args);
    assert.notEqual(code, 0);
    assert.match(stderr, expected);
  };
  const gap = await file('gap.ndjson', '{"id":"a","text":"x"}\n{"id":"b","title":"y"}\n');
  await expectError(
    /gap\.ndjson:2: expected a text in text, found no such field; the fields of this row are title/,
    ...[gap, '-c', 'gaps', '--embed', 'text'],
  );
  const both = await file('both.ndjson', '{"id":"a","text":"x","values":[1,2]}\n');
  await expectError(/found a vector beside the text/, both, '-c', 'gaps', '--embed', 'text');
  await expectError(
    /--embed makes the vectors, so it excludes --values-field/,
    ...[both, '-c', 'gaps', '--embed', 'text', '--values-field', 'values'],
  );
  await client.collections.create({ id: 'modelless', dimension: 2 });
  await expectError(
    /--embed needs a model, and collection modelless has none/,
    gap,
    '-c',
    'modelless',
    '--embed',
    'text',
  );
  await assert.rejects(client.collections.get('gaps'), { code: 'collection_not_found' });
});
