// The mixed work of the soak: a fixed set of ids that is written, read, searched and deleted again and again, so that
// nothing has a reason to grow. Each request is drawn by weight; a walk or the life of a collection takes several
// requests.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { createCaller, Reply } from '../../support/server-process.js';

export type Call = ReturnType<typeof createCaller>['call'];
type Random = () => number;

export interface Work {
  readonly kind: string;
  /** Throws if a reply is not the expected one. */
  readonly run: (call: Call) => Promise<unknown>;
}

export interface WorkloadOptions {
  readonly backupDirectory: string;
  readonly random: Random;
  readonly rowCount: number;
}

const DIMENSION = 64;
const WORDS = 200;
const LOAD_ROWS = 500;
/** Short, so that expired vectors do not pile up. */
const TTL_MS = 20_000;

const KINDS: readonly (readonly [kind: string, weight: number])[] = [
  ['query', 250],
  ['query filter', 100],
  ['query words', 80],
  ['get', 120],
  ['upsert 1', 120],
  ['upsert 50', 60],
  ['patch', 60],
  ['delete', 40],
  ['delete filter', 4],
  ['expiring', 30],
  ['idempotent', 30],
  ['count', 30],
  ['facets', 10],
  ['list', 25],
  ['batch', 25],
  ['walk', 8],
  ['join', 1],
  ['export', 1],
  ['collection', 4],
  ['backup', 1],
];
const TOTAL_WEIGHT = KINDS.reduce((sum, [, weight]) => sum + weight, 0);

export class Workload {
  readonly #options: WorkloadOptions;
  #count = 0;

  constructor(options: WorkloadOptions) {
    this.#options = options;
  }

  /** Creates the collection and its rows. */
  async load(call: Call): Promise<void> {
    await must(call, 'POST', '/v1/collections', {
      id: 'c',
      dimension: DIMENSION,
      metric: 'cosine',
      text: { fields: ['title'] },
    });
    const { rowCount } = this.#options;
    for (let from = 0; from < rowCount; from += LOAD_ROWS) {
      const ids = Array.from({ length: Math.min(LOAD_ROWS, rowCount - from) }, (_, i) => from + i);
      await must(call, 'POST', '/v1/collections/c/vectors', {
        vectors: ids.map((n) => this.#vector(`v${n}`)),
      });
    }
  }

  next(): Work {
    let at = this.#options.random() * TOTAL_WEIGHT;
    const kind = KINDS.find(([, weight]) => {
      at -= weight;
      return at < 0;
    })![0];
    return { kind, run: this.#work(kind, this.#count++) };
  }

  #work(kind: string, number: number): Work['run'] {
    const { random } = this.#options;
    const path = '/v1/collections/c';
    const post = (operation: string, body: object) => async (call: Call) => {
      await must(call, 'POST', `${path}/${operation}`, body);
    };
    const query = (more: object) => post('query', { vector: this.#values(), top_k: 10, ...more });
    switch (kind) {
      case 'query':
        return query({ include_metadata: true });
      case 'query filter':
        return query({ filter: { n: { $lt: 100 }, kind: 'a' } });
      case 'query words':
        return post('query', { text: { query: `${this.#word()} ${this.#word()}` }, top_k: 10 });
      case 'get':
        return (call) => mayLack(call, 'GET', `${path}/vectors/${this.#id()}`);
      case 'upsert 1':
        return post('vectors', { vectors: [this.#vector(this.#id())] });
      case 'upsert 50':
        return post('vectors', { vectors: this.#vectors(50) });
      case 'patch':
        return (call) =>
          mayLack(call, 'PATCH', `${path}/vectors/${this.#id()}`, {
            metadata: { n: Math.floor(random() * 1000) },
          });
      case 'delete':
        return (call) => mayLack(call, 'DELETE', `${path}/vectors/${this.#id()}`);
      case 'delete filter':
        return post('vectors/delete', { filter: { n: Math.floor(random() * 1000) } });
      case 'expiring': {
        const expiresAt = new Date(Date.now() + TTL_MS).toISOString();
        const id = `t${number % 500}`;
        return post('vectors', { vectors: [{ ...this.#vector(id), expires_at: expiresAt }] });
      }
      case 'idempotent':
        return this.#repeated(`${path}/vectors`, number);
      case 'count':
        return post('count', { filter: { n: { $gte: 500 } } });
      case 'facets':
        return post('aggregate', { facets: [{ path: 'kind' }] });
      case 'list':
        return (call) => must(call, 'GET', `${path}/vectors?limit=100&include_values=true`);
      case 'batch':
        return post('query/batch', {
          queries: Array.from({ length: 8 }, () => ({ vector: this.#values(), top_k: 10 })),
        });
      case 'walk':
        return (call) => this.#walk(call, path);
      case 'join':
        return post('join', { top_k: 3, sample: 50 });
      case 'export':
        return (call) => must(call, 'GET', `${path}/export?format=ndjson`);
      case 'collection':
        return (call) => this.#liveAndDie(call, `churn-${number}`);
      case 'backup':
        return (call) => this.#backUp(call, `backup-${number}`);
      default:
        throw new Error(`no work of the kind ${kind}`);
    }
  }

  /** The second request gets the stored reply. */
  #repeated(path: string, number: number): Work['run'] {
    const body = { vectors: [this.#vector(this.#id())], idempotency_key: `key-${number}` };
    return async (call) => {
      const first = await must(call, 'POST', path, body);
      const second = await must(call, 'POST', path, body);
      if (first.text !== second.text) throw new Error('the reply to a repeated request differs');
    };
  }

  async #walk(call: Call, path: string): Promise<void> {
    const body = { vector: this.#values(), limit: 50 };
    const seen = new Set<string>();
    let cursor: string | undefined;
    for (let page = 0; page < 4; page++) {
      const reply = await call('POST', `${path}/query`, cursor ? { cursor } : body);
      // On a machine that is too busy, pages are read too slowly.
      if (cursor !== undefined && reply.text.includes('"cursor_expired"')) return;
      requireSuccess(reply, 'a page of a walk');
      const { matches, next_cursor } = reply.json<{
        matches: { id: string }[];
        next_cursor?: string;
      }>();
      for (const { id } of matches) {
        if (seen.has(id)) throw new Error(`the walk returns ${id} twice`);
        seen.add(id);
      }
      if (next_cursor === undefined) return;
      cursor = next_cursor;
    }
  }

  async #liveAndDie(call: Call, id: string): Promise<void> {
    await must(call, 'POST', '/v1/collections', { id, dimension: DIMENSION });
    await must(call, 'POST', `/v1/collections/${id}/vectors`, { vectors: this.#vectors(200) });
    await must(call, 'POST', `/v1/collections/${id}/query`, { vector: this.#values(), top_k: 5 });
    await must(call, 'DELETE', `/v1/collections/${id}`);
  }

  async #backUp(call: Call, name: string): Promise<void> {
    const reply = await call('POST', '/v1/backups', { name });
    // Only one backup runs at a time.
    if (reply.status !== 503) requireSuccess(reply, 'POST /v1/backups');
    await rm(join(this.#options.backupDirectory, name), { recursive: true, force: true });
  }

  #vectors(count: number): object[] {
    const ids = new Set(Array.from({ length: count }, () => this.#id()));
    return [...ids].map((id) => this.#vector(id));
  }

  #vector(id: string): object {
    const { random } = this.#options;
    const n = Math.floor(random() * 1000);
    const title = Array.from({ length: 6 }, () => this.#word()).join(' ');
    return { id, values: this.#values(), metadata: { n, title, kind: n % 3 === 0 ? 'a' : 'b' } };
  }

  #values(): number[] {
    return Array.from({ length: DIMENSION }, () => Math.fround(this.#options.random() - 0.5));
  }

  #word(): string {
    return `word${Math.floor(this.#options.random() ** 2 * WORDS)}`;
  }

  #id(): string {
    return `v${Math.floor(this.#options.random() * this.#options.rowCount)}`;
  }
}

export async function must(
  call: Call,
  method: string,
  path: string,
  body?: object,
): Promise<Reply> {
  const reply = await call(method, path, body);
  requireSuccess(reply, `${method} ${path}`);
  return reply;
}

/** For an id that may have been deleted. */
async function mayLack(call: Call, method: string, path: string, body?: object): Promise<void> {
  const reply = await call(method, path, body);
  if (reply.status !== 404) requireSuccess(reply, `${method} ${path}`);
}

function requireSuccess({ status, text }: Reply, what: string): void {
  if (status !== 200) throw new Error(`${what}: ${status} ${text.slice(0, 300)}`);
}
