// Many clients that do heavy work concurrently in a separate thread, each one request at a time. They read replies as
// fast as they can, and wait as long as a refusal says.

import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { createRandom } from '../../database/harness.js';

export interface ClientsInput {
  readonly url: string;
  readonly clientCount: number;
  readonly dimension: number;
  readonly seed: number;
  /** Shared counter of the requests answered with 200. */
  readonly answered: Int32Array;
}

/** Outcomes by kind of request: a status, or what was wrong. */
export type Outcomes = Record<string, Record<string, number>>;

interface HeavyRequest {
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly accept?: string;
}

type Random = () => number;

/** `dimension` is that of the collection `c`, which has metadata `{n, text}`. */
function heavyRequests(dimension: number): readonly ((random: Random) => HeavyRequest)[] {
  const vector = (random: Random) => Array.from({ length: dimension }, () => random() - 0.5);
  const post = (kind: string, path: string, body: object, accept?: string): HeavyRequest => {
    const request = { kind, method: 'POST', path: `/v1/collections/c${path}`, body };
    return accept === undefined ? request : { ...request, accept };
  };
  const get = (kind: string, path: string): HeavyRequest => ({
    kind,
    method: 'GET',
    path: `/v1/collections/c${path}`,
  });
  const batch = (random: Random, length: number) => ({
    queries: Array.from({ length }, () => ({
      vector: vector(random),
      top_k: 10_000,
      include_metadata: true,
    })),
  });
  return [
    (random) => post('batch', '/query/batch', batch(random, 1_024)),
    (random) => post('batch-ndjson', '/query/batch', batch(random, 16), 'application/x-ndjson'),
    (random) =>
      post('query', '/query', { vector: vector(random), top_k: 10_000, include_metadata: true }),
    (random) =>
      post('query-values', '/query', {
        vector: vector(random),
        top_k: 10_000,
        include_values: true,
      }),
    (random) =>
      post('filter', '/query', {
        vector: vector(random),
        top_k: 1_000,
        filter: { text: { $regex: `w${Math.floor(random() * 10)}.*x` } },
      }),
    (random) => {
      const from = Math.floor(random() * 1e6);
      const vectors = Array.from({ length: 1_000 }, (_, i) => ({
        id: `w${(from + i) % 20_000}`,
        values: vector(random),
        metadata: { n: i, text: `w${i} written` },
      }));
      return post('upsert', '/vectors', { vectors });
    },
    () =>
      post('join', '/join', {
        top_k: 100,
        include_metadata: true,
        sample: 2_000,
        with_sample: 2_000,
      }),
    () => get('export-arrow', '/export?format=arrow'),
    () => get('export-ndjson', '/export?format=ndjson'),
    () => get('export-parquet', '/export?format=parquet'),
    () => get('list', '/vectors?limit=1000&include_values=true'),
    () => post('projection', '/projection', { sample: 5_000 }),
  ];
}

const SECOND_MS = 1_000;

/** Returns the outcome, and the milliseconds to wait. */
function send(agent: Agent, url: string, heavy: HeavyRequest): Promise<readonly [string, number]> {
  const { method, path, body, accept } = heavy;
  const payload = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve) => {
    const outgoing = request(url + path, {
      method,
      agent,
      headers: {
        ...(payload && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(payload),
        }),
        ...(accept && { accept }),
      },
    });
    outgoing.on('response', (incoming: IncomingMessage) => {
      const status = incoming.statusCode!;
      const seconds = Number(incoming.headers['retry-after'] ?? Number.NaN);
      const isRefusal = status === 429 || status === 503;
      const outcome = isRefusal && !(seconds > 0) ? `${status} without Retry-After` : `${status}`;
      incoming.resume();
      incoming.on('end', () => resolve([outcome, isRefusal ? seconds * SECOND_MS : 0]));
      incoming.on('error', () => resolve([`${status}, cut`, SECOND_MS]));
    });
    outgoing.on('error', (error: NodeJS.ErrnoException) => resolve([`${error.code}`, SECOND_MS]));
    outgoing.end(payload);
  });
}

async function run({ url, clientCount, dimension, seed, answered }: ClientsInput): Promise<void> {
  const kinds = heavyRequests(dimension);
  const agent = new Agent({ keepAlive: true, maxSockets: clientCount });
  const outcomes: Outcomes = {};
  let isStopped = false;
  parentPort!.once('message', () => {
    isStopped = true;
    agent.destroy();
    parentPort!.postMessage(outcomes);
  });
  const client = async (index: number) => {
    const random = createRandom(seed + index);
    while (!isStopped) {
      const heavy = kinds[Math.floor(random() * kinds.length)]!(random);
      const [outcome, waitMs] = await send(agent, url, heavy);
      if (isStopped) return;
      outcomes[heavy.kind] ??= {};
      const counts = outcomes[heavy.kind];
      counts[outcome] = (counts[outcome] ?? 0) + 1;
      if (outcome === '200') Atomics.add(answered, 0, 1);
      // Random pauses keep clients from retrying all at the same moment.
      if (waitMs > 0) await sleep(waitMs * (1 + random()));
    }
  };
  await Promise.all(Array.from({ length: clientCount }, (_, index) => client(index)));
}

await run(workerData as ClientsInput);
