// A data directory with every kind of file, in an earlier and a current version. It has collections of every type, with
// segment files, stored deletions, logs and all kinds of small entries, and two backups. Also the requests whose
// answers must not change, and writes after them.

import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SagittaError } from '../../../src/common/errors.js';
import { silentLogger } from '../../../src/common/logger.js';
import { Backups } from '../../../src/database/admin/backup.js';
import type { Database } from '../../../src/database/database.js';
import { openStore } from '../../../src/storage/open-store.js';
import type { DiskStore } from '../../../src/storage/store.js';
import { createRandom, createTestClock, openDatabase } from '../../database/harness.js';
import { createService, type Service } from '../../server/harness.js';

/** The contents of a sample's folder. */
export const OLDER = 'older';
export const NEWER = 'newer';
export const BACKUPS = 'backups';
export const OLDER_BACKUP = 'first';
export const NEWER_BACKUP = 'second';
export const OTHER_STORE = 'other';

/** A journal of several logs and bases is then small enough to be copied for each case. */
export const LOG_BYTES_MAX = 40_000;

interface CollectionType {
  readonly id: string;
  readonly shape: object;
  readonly vector: (random: () => number, n: number) => object;
  readonly query: object;
}

const floats = (random: () => number, count: number) =>
  Array.from({ length: count }, () => Math.fround(random() - 0.5));

/** Segment files of these collections differ in format and sections. */
const TYPES: readonly CollectionType[] = [
  {
    id: 'plain',
    shape: { dimension: 24, metric: 'cosine', text: { fields: ['title'] } },
    vector: (random) => ({ values: floats(random, 24) }),
    query: { vector: Array.from({ length: 24 }, (_, i) => i - 11), include_values: true },
  },
  {
    id: 'other',
    shape: { dimension: 24, metric: 'cosine', text: { fields: ['title'] } },
    vector: (random) => ({ values: floats(random, 24) }),
    query: { text: { query: 'word3 word5' } },
  },
  {
    id: 'named',
    shape: {
      dimension: 5,
      metric: 'dot',
      vectors: { image: { dimension: 7, metric: 'euclidean' } },
    },
    vector: (random, n) => ({
      values: floats(random, 5),
      ...(n % 3 === 0 ? {} : { vectors: { image: floats(random, 7) } }),
    }),
    query: { vector: [1, 2, 3, 4, 5, 6, 7], using: 'image', include_values: true },
  },
  {
    id: 'sparse',
    shape: { sparse_vectors: { words: {} } },
    vector: (random, n) => ({
      sparse_vectors: { words: { indices: [n % 7, 10 + (n % 11)], values: [1, 0.5 + random()] } },
    }),
    query: { sparse: { indices: [3, 12], values: [1, 2] }, using: 'words', include_values: true },
  },
  {
    id: 'multi',
    shape: {
      dimension: 3,
      metric: 'euclidean',
      vectors: { tokens: { dimension: 4, metric: 'dot', multi: true } },
    },
    vector: (random, n) => ({
      values: floats(random, 3),
      vectors: { tokens: Array.from({ length: 1 + (n % 4) }, () => floats(random, 4)) },
    }),
    query: {
      multi_vector: [
        [1, 0, 0, 1],
        [0, 1, 1, 0],
      ],
      using: 'tokens',
      include_values: true,
    },
  },
  {
    id: 'texts',
    shape: { text: { fields: ['title'] } },
    vector: () => ({}),
    query: { text: { query: 'word1 word2' } },
  },
];

const ROWS_PER_WRITE = 40;
const FEW_ROWS = 4;

export interface OpenSample {
  readonly store: DiskStore;
  readonly database: Database;
  readonly service: Service;
  /** What the service has logged about failed requests. */
  readonly logged: readonly unknown[];
  close(): Promise<void>;
}

/** Opens a data directory with the clock and the small segments of all samples. */
export async function openSample(
  directory: string,
  warn: (message: string) => void,
): Promise<OpenSample> {
  const store = await openStore({ directory, warn, logBytesMax: LOG_BYTES_MAX });
  try {
    const database = await openDatabase({ store, clock: createTestClock() });
    const logged: unknown[] = [];
    const error = (details: object) => logged.push((details as { err?: unknown }).err);
    const service = await createService({ database, logger: { ...silentLogger, error } });
    const close = async () => {
      await service.close();
      await store.close();
    };
    return { store, database, service, logged, close };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Fills a new folder. The states depend only on the seed. */
export async function makeSample(folder: string, seed: number): Promise<void> {
  const random = createRandom(seed);
  const directory = join(folder, 'live');
  await mkdir(join(folder, BACKUPS), { recursive: true });
  const noWarning = (message: string) => {
    throw new Error(`a new directory is not repaired: ${message}`);
  };
  const parts = [
    [OLDER, OLDER_BACKUP, 0, 3],
    [NEWER, NEWER_BACKUP, 3, 5],
  ] as const;
  for (const [copy, backup, from, to] of parts) {
    const sample = await openSample(directory, noWarning);
    if (from === 0) await createCollections(sample);
    for (let round = from; round < to; round++) await writeRound(sample, random, round);
    await sample.close();
    // Checkpoints lag behind the last writes.
    const again = await openSample(directory, noWarning);
    await writeRound(again, random, to * 10);
    await makeBackup(again.store, join(folder, BACKUPS, backup));
    await again.close();
    await copyDirectory(directory, join(folder, copy));
  }
  await makeOtherStore(join(folder, OTHER_STORE));
}

/** A store of logs and values that is unrelated to the sample. */
async function makeOtherStore(directory: string): Promise<void> {
  const store = await openStore({ directory, logBytesMax: LOG_BYTES_MAX });
  for (let sequence = 1; sequence <= 60; sequence++) {
    const record = new Uint8Array(1_000 * (sequence % 20)).fill(sequence);
    await store.commit([
      { kind: 'append', log: 'other', sequence, record },
      // A base is then longer than a page.
      { kind: 'put', key: ['other', `${sequence % 40}`], value: record.subarray(0, 250) },
    ]);
  }
  await store.close();
}

async function makeBackup(store: DiskStore, folder: string): Promise<void> {
  await new Backups({ store, directory: null, logger: silentLogger }).createAt(folder);
}

/** Copies everything but the sockets. */
function copyDirectory(from: string, to: string): Promise<void> {
  return cp(from, to, { recursive: true, filter: (path) => !path.endsWith('/lock') });
}

async function must(service: Service, method: string, path: string, body?: object): Promise<void> {
  const reply = await service.call(method, path, body === undefined ? {} : { body });
  if (reply.status !== 200) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
}

async function createCollections({ database, service }: OpenSample): Promise<void> {
  for (const { id, shape } of TYPES) {
    const labels = { team: `of ${id}`, long: 'label '.repeat(id === 'named' ? 40 : 1) };
    await must(service, 'POST', '/collections', { id, ...shape, labels });
  }
  await must(service, 'PUT', '/aliases/live', { collection: 'plain' });
  await database.apiKeys.create({ owner: 'someone', scopes: ['admin'], expiresAt: null });
}

/** Inserts, replaces and deletes in every collection, and leaves large and small log records. */
async function writeRound(
  { service }: OpenSample,
  random: () => number,
  round: number,
  rowsPerWrite = ROWS_PER_WRITE,
): Promise<void> {
  for (const { id, vector } of TYPES) {
    const rowCount = id === 'plain' ? 3 * rowsPerWrite : rowsPerWrite;
    const vectors = Array.from({ length: rowCount }, (_, i) => {
      const n = round * 30 + i;
      return {
        id: `v${n}`,
        ...vector(random, n),
        metadata: {
          n,
          title: `word${n % 7} word${n % 13}`,
          half: n % 2 === 0,
          tags: ['a', `t${n % 5}`],
        },
        ...(n % 10 === 0 ? { expires_at: '2027-01-01T00:00:00Z' } : {}),
      };
    });
    await must(service, 'POST', `/collections/${id}/vectors`, { vectors });
    await must(service, 'POST', `/collections/${id}/vectors/delete`, deletionOf(id, round));
  }
  await must(service, 'PATCH', '/collections/other', { description: `after round ${round}` });
  const gone = `gone-${round}`;
  await must(service, 'POST', '/collections', { id: gone, dimension: 64 });
  const values = floats(random, 64);
  await must(service, 'POST', `/collections/${gone}/vectors`, {
    vectors: Array.from({ length: 100 }, (_, i) => ({ id: `g${i}`, values })),
  });
  await must(service, 'DELETE', `/collections/${gone}`);
}

function deletionOf(id: string, round: number): object {
  const ids = [`v${round * 30 + 1}`, `v${round * 30 + 2}`];
  return { ids, idempotency_key: `${id}-${round}` };
}

interface Question {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

function questions(): Question[] {
  const general = ['/collections?limit=100', '/aliases', '/keys', '/audit'].map((path) => ({
    method: 'GET',
    path,
  }));
  const ofTypes = TYPES.flatMap(({ id, query }) => {
    const path = `/collections/${id}`;
    const post = (operation: string, body: object) => ({
      method: 'POST',
      path: `${path}/${operation}`,
      body,
    });
    return [
      { method: 'GET', path },
      { method: 'GET', path: `${path}/vectors?limit=1000&include_values=true` },
      post('query', { ...query, top_k: 30, include_metadata: true }),
      post('query', { ...query, top_k: 5, filter: { half: true, tags: 't3' } }),
      post('count', { filter: { n: { $gte: 90 } } }),
      // A repeated request, to which the stored reply is returned.
      post('vectors/delete', deletionOf(id, 4)),
    ];
  });
  return [...general, ...ofTypes];
}

/** A question and its answer, or the reason why there is none. */
export interface Answer {
  readonly question: string;
  readonly status: number;
  readonly text: string;
}

/** Members that depend on the process or the time. */
const VOLATILE = /"(?:memory|next_cursor|request_id|instance)":(?:"[^"]*"|\{[^{}]*\}),?/g;

export async function ask({ service, logged }: OpenSample): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const { method, path, body } of questions()) {
    const reply = await service.call(method, path, body === undefined ? {} : { body });
    const text =
      reply.status === 500 ? causeOf(logged.at(-1)) : reply.text.replaceAll(VOLATILE, '');
    answers.push({
      question: `${method} ${path} ${JSON.stringify(body ?? '')}`,
      status: reply.status,
      text,
    });
  }
  return answers;
}

/** Clients are referred to the log for details of an error, so the log is judged. */
function causeOf(logged: unknown): string {
  const { message, stack } = logged as Error;
  return logged instanceof SagittaError
    ? JSON.stringify({ code: logged.code, detail: message })
    : JSON.stringify({ code: null, detail: stack });
}

/** Replaces values of every kind and writes checkpoints, so that overlooked damage gets worse. */
export async function writeMore(sample: OpenSample): Promise<void> {
  const random = createRandom(7);
  for (const round of [60, 61]) await writeRound(sample, random, round, FEW_ROWS);
}
