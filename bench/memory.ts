// Bytes per row of a real server: in segment files by kind and dimension, and in memory beside them; of a collection
// with many short rows; and of many collections. Figures are bytes, so other work on the machine does not matter.
//
//   node dist/bench/memory.js                 smoke parameters: a few seconds, only checks the bench
//   node dist/bench/memory.js --full          the parameters of docs/performance.md
//   --only TEXT      only the parts whose name contains TEXT: dimensions, rows, collections
//   --rows N         another number of rows of 16 dimensions
//   --out FILE       also writes the tables as Markdown

import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { CODE_NAMES } from '../src/common/types.js';
import { decodeSegment } from '../src/segment/segment-file.js';
import { GeneratedRows, streamRows } from '../test/durability/generated-rows.js';
import {
  createCaller,
  type ServerProcess,
  startServerProcess,
} from '../test/support/server-process.js';
import { COMMAND_SETTINGS, describeMachine } from './engine/machine.js';

const SMOKE = { dimensions: [16, 100], dimensionRows: 3_000, rows: 5_000, collections: 20 };
const FULL = {
  dimensions: [16, 100, 128, 384, 512, 768, 1_536],
  dimensionRows: 140_000,
  rows: 5_000_000,
  collections: 10_000,
};
/** The dimension of the vectors of the collection with many rows, and of those in many collections. */
const SHORT_DIMENSION = 16;
/** Rows of smoke segments, so that some are full and get files. */
const SMOKE_SEGMENT_ROWS = '1024';
/** Requests at a time for many collections. */
const CONNECTIONS = 16;
const SETTLED_MS_MAX = 600_000;
const QUERY_COUNT = 20;
const RESIDENT = ['resident, not reclaimable', 'resident, of files'] as const;

type Call = ReturnType<typeof createCaller>['call'];

interface Segments {
  readonly segments: readonly {
    readonly state: string;
    readonly row_count: number;
    readonly memory: { readonly host_bytes: number };
  }[];
  readonly file_bytes: number;
}

interface Collection {
  readonly vector_count: number;
  readonly memory: { readonly host_bytes: number };
}

const { values: args } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    rows: { type: 'string' },
    out: { type: 'string' },
  },
});
const sizes = args.full ? FULL : SMOKE;
const report: string[] = [`Memory bench, ${args.full ? 'full' : 'smoke'} parameters`];
report.push(describeMachine());
if ('dimensions'.includes(args.only)) await measureDimensions();
if ('rows'.includes(args.only)) await measureRows(Number(args.rows ?? sizes.rows));
if ('collections'.includes(args.only)) await measureCollections(sizes.collections);
const text = `${report.join('\n')}\n`;
console.log(text);
if (args.out !== undefined) await writeFile(args.out, text);

async function measureDimensions(): Promise<void> {
  const kinds = ['values', ...CODE_NAMES, 'ids', 'metadata and the rest'];
  const header = ['dimension', ...kinds, 'file', 'in memory: id index', 'the rest'];
  const rows: string[][] = [];
  for (const dimension of sizes.dimensions) {
    const cells = await withDirectory((directory) => measureDimension(directory, dimension));
    console.error(`${dimension}: ${cells.join(', ')}`);
    rows.push([`${dimension}`, ...cells]);
  }
  const count = sizes.dimensionRows;
  addTable(`Bytes per row of full segments in files; ids of 9 bytes, ${count} rows`, header, rows);
}

/** Returns the bytes per row: of the first segment file by kind, and in memory beside the files. */
async function measureDimension(directory: string, dimension: number): Promise<string[]> {
  return withServer(directory, async (server, call) => {
    await createCollection(call, 'c', dimension);
    const rows = new GeneratedRows(dimension);
    await streamRows(`${server.url}/v1/collections/c/vectors`, rows, [0, sizes.dimensionRows]);
    const { segments } = await waitUntilSettled(call);
    const { memory, vector_count: rowCount } = await get<Collection>(call, '/v1/collections/c');
    const ofSegments = segments.reduce((sum, one) => sum + one.memory.host_bytes, 0);
    const stored = segments.filter(({ state }) => state === 'stored');
    const storedRows = stored.reduce((sum, { row_count }) => sum + row_count, 0);
    const storedBytes = stored.reduce((sum, one) => sum + one.memory.host_bytes, 0);
    const folder = join(directory, 'segments');
    const [collection] = await readdir(folder);
    const [file] = (await readdir(join(folder, collection!))).sort();
    const kinds = bytesPerRow(await readFile(join(folder, collection!, file!)));
    return [...kinds, (memory.host_bytes - ofSegments) / rowCount, storedBytes / storedRows].map(
      (bytes) => bytes.toFixed(1),
    );
  });
}

/** By kind, and their sum. What is neither of the others is metadata, sequences, and the format. */
function bytesPerRow(file: Uint8Array): number[] {
  const { rowCount, vectors, ids } = decodeSegment(file, { key: 'bench', number: 1 }).toData();
  const [vector] = vectors;
  if (vector?.kind !== 'dense') throw new Error('expected a segment of dense vectors');
  const { values, codes } = vector;
  const known = [
    values.byteLength,
    ...CODE_NAMES.map((name) => codes?.[name]?.byteLength ?? 0),
    ids.offsets.byteLength + ids.bytes.byteLength,
  ];
  const rest = file.byteLength - known.reduce((sum, bytes) => sum + bytes, 0);
  return [...known, rest, file.byteLength].map((bytes) => bytes / rowCount);
}

/** Measures one collection with many short rows: after its load, and after a start with some queries. */
async function measureRows(rowCount: number): Promise<void> {
  const generated = new GeneratedRows(SHORT_DIMENSION);
  const rows: string[][] = [];
  await withDirectory(async (directory) => {
    const add = async (when: string, server: ServerProcess, call: Call) => {
      const { file_bytes } = await waitUntilSettled(call);
      const { memory } = await get<Collection>(call, '/v1/collections/c');
      const { anonymous, files } = await residentBytes(server);
      const figures = [await bytesIn(directory), file_bytes, memory.host_bytes, anonymous, files];
      rows.push([when, ...figures.map((bytes) => megabytes(bytes))]);
      const perRow = figures.map((bytes) => (bytes / rowCount).toFixed(0));
      rows.push(['… a row, in bytes', ...perRow]);
      console.error(`${when}: ${perRow.join(', ')} bytes a row`);
    };
    await withServer(directory, async (server, call) => {
      await createCollection(call, 'c', SHORT_DIMENSION);
      await streamRows(`${server.url}/v1/collections/c/vectors`, generated, [0, rowCount]);
      await add('after the load', server, call);
    });
    await withServer(directory, async (server, call) => {
      await search(call, generated, rowCount);
      await add(`after a start and ${QUERY_COUNT} queries`, server, call);
    });
  });
  const header = ['when', 'data directory', 'segment files', 'accounted memory', ...RESIDENT];
  addTable(`${rowCount} rows of ${SHORT_DIMENSION} dimensions`, header, rows);
}

async function search(call: Call, rows: GeneratedRows, rowCount: number): Promise<void> {
  for (let i = 0; i < QUERY_COUNT; ) {
    const vector = [...rows.vector(rowCount + i)];
    const { status, text } = await call('POST', '/v1/collections/c/query', { vector, top_k: 10 });
    if (status === 200) i++;
    else if (text.includes('"starting"')) await sleep(50);
    else throw new Error(`status ${status}: ${text}`);
  }
}

/** Measures many collections: empty, with one row each, and after a start. */
async function measureCollections(count: number): Promise<void> {
  const rows: string[][] = [];
  await withDirectory(async (directory) => {
    let before: readonly number[] = [];
    const measure = async (server: ServerProcess) => {
      const { anonymous, files } = await residentBytes(server);
      return [await bytesIn(directory), anonymous, files];
    };
    const add = async (when: string, server: ServerProcess) => {
      const found = await measure(server);
      rows.push([when, ...found.map((bytes) => megabytes(bytes))]);
      const added = found.map((bytes, i) => ((bytes - before[i]!) / count / 1000).toFixed(1));
      rows.push(['… a collection, in kB', ...added]);
      console.error(`${when}: ${added.join(', ')} kB a collection`);
    };
    await withServer(directory, async (server, call) => {
      before = await measure(server);
      rows.push(['no collection', ...before.map((bytes) => megabytes(bytes))]);
      await forEach(count, (i) => createCollection(call, `c${i}`, SHORT_DIMENSION));
      await add(`${count} empty collections`, server);
      const values = Array.from({ length: SHORT_DIMENSION }, (_, i) => i + 1);
      await forEach(count, async (i) => {
        const body = { vectors: [{ id: 'a', values, metadata: { n: i } }] };
        await expect(call('POST', `/v1/collections/c${i}/vectors`, body));
      });
      await add('… with one row each', server);
    });
    await withServer(directory, async (server) => add('… after a start', server));
  });
  const header = ['when', 'data directory', ...RESIDENT];
  addTable(`${count} collections of ${SHORT_DIMENSION} dimensions`, header, rows);
}

async function forEach(count: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
}

async function withDirectory<Result>(use: (path: string) => Promise<Result>): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), 'sagitta-bench-'));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function withServer<Result>(
  dataDirectory: string,
  use: (server: ServerProcess, call: Call) => Promise<Result>,
): Promise<Result> {
  const settings = {
    ...COMMAND_SETTINGS.settings,
    SAGITTA_WRITE_RATE_MAX: '0',
    SAGITTA_READ_RATE_MAX: '0',
    ...(!args.full && { SAGITTA_SEGMENT_ROWS_MAX: SMOKE_SEGMENT_ROWS, SAGITTA_VALUES: 'mapped' }),
  };
  const server = await startServerProcess({ ...COMMAND_SETTINGS, dataDirectory, settings });
  const { call, close } = createCaller(server.url, CONNECTIONS);
  try {
    return await use(server, call);
  } finally {
    close();
    await server.stop();
  }
}

async function createCollection(call: Call, id: string, dimension: number): Promise<void> {
  await expect(call('POST', '/v1/collections', { id, dimension, metric: 'cosine' }));
}

async function expect(reply: ReturnType<Call>): Promise<void> {
  const { status, text } = await reply;
  if (status !== 200) throw new Error(`status ${status}: ${text}`);
}

async function get<Reply>(call: Call, path: string): Promise<Reply> {
  const reply = await call('GET', path);
  if (reply.status !== 200) throw new Error(`status ${reply.status}: ${reply.text}`);
  return reply.json<Reply>();
}

/** Waits until every full segment has a file and no file has changed for a second. */
async function waitUntilSettled(call: Call): Promise<Segments> {
  const deadline = performance.now() + SETTLED_MS_MAX;
  let fileBytes = -1;
  for (;;) {
    const found = await get<Segments>(call, '/v1/collections/c/segments?limit=1000');
    const isStored = found.segments.every(({ state }) => state !== 'sealed');
    if (isStored && found.file_bytes > 0 && found.file_bytes === fileBytes) return found;
    if (performance.now() > deadline) throw new Error('maintenance did not end in ten minutes');
    fileBytes = isStored ? found.file_bytes : -1;
    await sleep(1_000);
  }
}

async function residentBytes({ child }: ServerProcess) {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
  const bytes = (name: string) =>
    1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)![1]);
  return { anonymous: bytes('RssAnon') + bytes('RssShmem'), files: bytes('RssFile') };
}

/** Returns the bytes of all files in a directory and its folders. */
async function bytesIn(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const sizesOfFiles = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
  );
  return sizesOfFiles.reduce((sum, size) => sum + size, 0);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 10e6 ? 1 : 0)} MB`;
}

function addTable(
  title: string,
  header: readonly string[],
  rows: readonly (readonly string[])[],
): void {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const separator = header.map(() => '---');
  report.push('', `${title}:`, '', ...[header, separator, ...rows].map((cells) => line(cells)));
}
