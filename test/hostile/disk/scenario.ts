// The work of a server whose disk fails: a round of writes of every kind, checkpoints, compactions, backups and
// deletions. Each request is acknowledged or refused with a clear error, and the model is told which.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ERROR_TITLES } from '../../../src/common/errors.js';
import { verifyDirectory } from '../../../src/offline.js';
import type { Reply } from '../../support/server-process.js';
import { DIMENSION, type Model, type Rows, rowOf, type Send } from './model.js';

/** Rows per segment; the minimum of the configuration. */
export const SEGMENT_ROWS = 64;
const FEW_ROWS = 24;
const STREAM_ROWS = 100;
/** Small segments that a compaction merges. */
const SMALL_SEGMENTS = 4;
/** Attempts to see a compaction; the round continues without one, for example if it has failed. */
const LOOKS_MAX = 40;

export interface ScenarioOptions {
  readonly send: Send;
  readonly model: Model;
  readonly round: number;
  readonly backupDirectory: string;
}

/** The results of the requests in a round. */
export interface Outcome {
  acknowledged: number;
  /** Count by `status code`. */
  readonly refused: Map<string, number>;
}

export class Scenario {
  readonly #send: Send;
  readonly #model: Model;
  readonly #round: number;
  readonly #backupDirectory: string;
  readonly outcome: Outcome = { acknowledged: 0, refused: new Map() };
  #number: number;
  #isStopping = false;

  constructor({ send, model, round, backupDirectory }: ScenarioOptions) {
    this.#send = send;
    this.#model = model;
    this.#round = round;
    this.#backupDirectory = backupDirectory;
    this.#number = round * 1_000;
  }

  /** Rejects if the connection breaks, which means that the process has ended. */
  async run(): Promise<void> {
    const temporary = `t${this.#round}`;
    await this.#create(temporary);
    await this.#upsertWithKey(temporary, this.#newRows('a', FEW_ROWS));
    await this.#stream(temporary, this.#newRows('s', STREAM_ROWS));
    await this.#upsert('kept', this.#newRows(`r${this.#round % 8}-`, FEW_ROWS));
    await this.#patch(temporary);
    await this.#delete(temporary, FEW_ROWS / 2);
    for (let i = 0; i < SMALL_SEGMENTS; i++) {
      await this.#upsert(temporary, this.#newRows(`m${i}-`, FEW_ROWS));
      await this.#clone(temporary, `${temporary}-${i}`);
      await this.#drop(`${temporary}-${i}`);
    }
    await this.#makeAndRemoveKey();
    await this.#backup(`b${this.#round}`);
    await this.#upsert(temporary, this.#newRows('a', SEGMENT_ROWS));
    await this.#untilCompacted();
    await this.#drop(temporary);
    await this.#upsert('kept', this.#newRows(`e${this.#round % 8}-`, 2));
  }

  /** A write that must succeed, because nothing fails anymore. */
  async writeOnce(): Promise<Reply> {
    const rows = this.#newRows(`w${this.#round % 8}-`, 2);
    const reply = await this.#send('POST', '/v1/collections/kept/vectors', bodyOf(rows));
    await this.#note('a write after the fault', reply, rows, 'kept');
    return reply;
  }

  #newRows(prefix: string, count: number): Map<string, number> {
    const number = ++this.#number;
    return new Map(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, number + i]));
  }

  /**
   * Sends a request that changes something; `unsure` is called if it may have taken effect without an acknowledgement.
   */
  async #change(
    what: string,
    request: Parameters<Send>,
    { done, unsure }: { done: (reply: Reply) => void; unsure: () => void },
  ): Promise<void> {
    let reply: Reply;
    try {
      reply = await this.#send(...request);
    } catch (error) {
      unsure();
      throw error;
    }
    if (reply.status === 200) {
      this.outcome.acknowledged++;
      done(reply);
      return;
    }
    this.#refuse(what, reply);
    unsure();
    // A stopping process does not know what is on its disk, so the next one is asked.
    if (problemOf(reply).code === 'stopping') this.#isStopping = true;
    if (!this.#isStopping) await this.#model.settle(this.#send);
  }

  #refuse(what: string, reply: Reply): void {
    const { code } = problemOf(reply);
    const isClear =
      code !== undefined && code in ERROR_TITLES && EXPECTED_STATUSES.has(reply.status);
    if (!isClear) this.#model.violate(`${what}: an unclear reply: ${reply.status} ${reply.text}`);
    const outcome = `${reply.status} ${code}`;
    this.outcome.refused.set(outcome, (this.outcome.refused.get(outcome) ?? 0) + 1);
  }

  async #note(what: string, reply: Reply, rows: Rows, collection: string): Promise<void> {
    if (reply.status === 200) this.#model.wrote(collection, rows);
    else {
      this.#refuse(what, reply);
      this.#model.mayHaveWritten(what, collection, rows);
    }
  }

  #write(
    what: string,
    collection: string,
    rows: ReadonlyMap<string, number | null>,
    request: Parameters<Send>,
  ): Promise<void> {
    if (!this.#model.has(collection)) return Promise.resolve();
    return this.#change(`${what} of round ${this.#round}`, request, {
      done: () => this.#model.wrote(collection, rows),
      unsure: () => this.#model.mayHaveWritten(`${what} of round ${this.#round}`, collection, rows),
    });
  }

  #create(id: string): Promise<void> {
    const body = { id, dimension: DIMENSION, metric: 'dot' };
    return this.#change(`create ${id}`, ['POST', '/v1/collections', body], {
      done: () => this.#model.changed(id, new Map()),
      unsure: () => this.#model.mayHaveChanged(`create ${id}`, id, new Map()),
    });
  }

  async #clone(from: string, to: string): Promise<void> {
    if (!this.#model.has(from)) return;
    const rows = this.#model.rowsOf(from);
    await this.#change(`clone ${to}`, ['POST', `/v1/collections/${from}/clone`, { id: to }], {
      done: () => this.#model.changed(to, rows),
      unsure: () => this.#model.mayHaveChanged(`clone ${to}`, to, rows),
    });
  }

  async #drop(id: string): Promise<void> {
    if (!this.#model.has(id)) return;
    await this.#change(`delete ${id}`, ['DELETE', `/v1/collections/${id}`], {
      done: () => this.#model.changed(id, null),
      unsure: () => this.#model.mayHaveChanged(`delete ${id}`, id, null),
    });
  }

  #upsert(collection: string, rows: Rows): Promise<void> {
    const path = `/v1/collections/${collection}/vectors`;
    return this.#write('upsert', collection, rows, ['POST', path, bodyOf(rows)]);
  }

  /** Sends the request twice: the second reply must equal the first, whether or not it was acknowledged. */
  async #upsertWithKey(collection: string, rows: Rows): Promise<void> {
    const headers = { 'idempotency-key': `key-${this.#round}` };
    const request: Parameters<Send> = [
      'POST',
      `/v1/collections/${collection}/vectors`,
      bodyOf(rows),
      headers,
    ];
    await this.#write('upsert with a key', collection, rows, request);
    await this.#write('upsert with a key again', collection, rows, request);
  }

  #stream(collection: string, rows: Rows): Promise<void> {
    const lines = [...rows].map(([id, number]) => JSON.stringify(rowOf(id, number)));
    const path = `/v1/collections/${collection}/vectors`;
    const headers = { 'content-type': 'application/x-ndjson' };
    return this.#write('stream', collection, rows, [
      'POST',
      path,
      `${lines.join('\n')}\n`,
      headers,
    ]);
  }

  async #patch(collection: string): Promise<void> {
    const id = [...this.#model.rowsOf(collection).keys()][0];
    if (id === undefined) return;
    const number = ++this.#number;
    const rows = new Map([[id, number]]);
    const { values, metadata } = rowOf(id, number) as { values: number[]; metadata: object };
    const path = `/v1/collections/${collection}/vectors/${id}`;
    await this.#write('patch', collection, rows, ['PATCH', path, { values, metadata }]);
  }

  #delete(collection: string, count: number): Promise<void> {
    const ids = [...this.#model.rowsOf(collection).keys()].slice(0, count);
    if (ids.length === 0) return Promise.resolve();
    const path = `/v1/collections/${collection}/vectors/delete`;
    const rows = new Map(ids.map((id) => [id, null]));
    return this.#write('delete', collection, rows, ['POST', path, { ids }]);
  }

  async #makeAndRemoveKey(): Promise<void> {
    let made: string | undefined;
    const body = { owner: `round ${this.#round}`, scopes: ['vectors:read'] };
    await this.#change('create a key', ['POST', '/v1/keys', body], {
      done: (reply) => {
        made = reply.json<{ id: string }>().id;
        this.#model.madeKey(made);
      },
      unsure: () => {},
    });
    if (made === undefined || this.#round % 2 === 0) return;
    const id = made;
    await this.#change('delete a key', ['DELETE', `/v1/keys/${id}`], {
      done: () => this.#model.removedKey(id),
      // The key may exist or not, so it is no longer looked for.
      unsure: () => this.#model.removedKey(id),
    });
  }

  /** A backup is complete or does not exist. */
  async #backup(name: string): Promise<void> {
    const folder = join(this.#backupDirectory, name);
    let isMade = false;
    await this.#change(`backup ${name}`, ['POST', '/v1/backups', { name }], {
      done: () => {
        isMade = true;
      },
      unsure: () => {},
    });
    if (!isMade) {
      if (existsSync(folder)) this.#model.violate(`backup ${name} failed, but it is there`);
      return;
    }
    const { findings } = await verifyDirectory(folder);
    // Notes are about remains of failed deletions, which the next start removes.
    for (const { severity, where, what } of findings) {
      if (severity === 'error') this.#model.violate(`backup ${name}: ${where}: ${what}`);
    }
    this.#model.backedUp(folder);
  }

  async #untilCompacted(): Promise<void> {
    const before = await this.#compactionCount();
    for (let i = 0; i < LOOKS_MAX; i++) {
      if ((await this.#compactionCount()) !== before) return;
    }
  }

  /** Number of finished and of failed compactions. */
  async #compactionCount(): Promise<number> {
    const { text } = await this.#send('GET', '/metrics');
    const read = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
    return read('sagitta_compaction_seconds_count') + read('sagitta_maintenance_failures_total');
  }
}

/** 504 is for a request that waited for a hanging disk. */
const EXPECTED_STATUSES = new Set([500, 503, 504, 507]);

export function problemOf(reply: Reply): { code?: string; detail?: string } {
  if (!String(reply.headers['content-type']).startsWith('application/problem+json')) return {};
  return reply.json<{ code: string; detail: string }>();
}

function bodyOf(rows: Rows): object {
  return { vectors: [...rows].map(([id, number]) => rowOf(id, number)) };
}
