// The clients of a simulation. Each sends one request after another to any node, with a session like that of
// packages/client, and records what it was told.

import { SagittaError } from '../../../src/common/errors.js';
import { laterOf } from '../../../src/server/cluster/high-water-marks.js';
import type { LogPositions } from '../../../src/server/wire/consistency.js';
import type { Dice } from './dice.js';
import { isOfCatalogue, type NodeRequest } from './node-api.js';
import type {
  Outcome,
  Read,
  ReadRecord,
  ReadResult,
  Reply,
  Write,
  WriteRecord,
} from './operations.js';
import type { SimulatedCluster } from './simulated-cluster.js';

/** The changes of rows, as often as they are chosen. */
const KINDS = ['insert', 'upsert', 'upsert', 'bulk', 'patch', 'patch', 'delete'] as const;
const KEY_COUNT = 8;
const ROW_KEYS = Array.from({ length: KEY_COUNT }, (_, i) => `k${i}`);
const PAUSE_MS_MAX = 250;
const RETRY_MS = 300;
/** Refusals that say that nothing was written and that another attempt may succeed. */
const PASSING = [
  'no_leader',
  'no_holder',
  'starting',
  'stopping',
  'deadline_exceeded',
  'overloaded',
];
/** Answers that are no failure of the cluster. */
const ORDINARY = [
  ...PASSING,
  'vector_exists',
  'vector_not_found',
  'precondition_failed',
  'idempotency_in_flight',
  'storage_full',
  'outcome_unknown',
  'collection_exists',
  'collection_not_found',
];

export class Clients {
  readonly writes: WriteRecord[] = [];
  readonly reads: ReadRecord[] = [];
  readonly #cluster: SimulatedCluster;
  readonly #collections: readonly string[];
  #runningCount = 0;
  #isStopped = false;
  /** Collections that were created by clients, and are not being dropped. */
  readonly #created: string[] = [];
  #markerCount = 0;

  constructor(cluster: SimulatedCluster, collections: readonly string[]) {
    this.#cluster = cluster;
    this.#collections = collections;
  }

  get areDone(): boolean {
    return this.#runningCount === 0;
  }

  /** Lets them finish what they have begun. */
  stop(): void {
    this.#isStopped = true;
  }

  start(count: number): void {
    const { scheduler, clients } = this.#cluster;
    for (let i = 0; i < count; i++) {
      const client = new Client(i, clients.dice.for(`${i}`));
      this.#runningCount++;
      scheduler.after(client.dice.between(0, 100), clients, 'client', async () => {
        while (!this.#isStopped) {
          await this.#act(client);
          await scheduler.sleep(client.dice.between(1, PAUSE_MS_MAX));
        }
        this.#runningCount--;
      });
    }
  }

  /** A write through one node that is repeated until it is acknowledged, to see that the cluster works. */
  probe(nodeName: string, collection: string): void {
    const { scheduler, clients } = this.#cluster;
    const client = new Client(
      100 + this.#markerCount,
      clients.dice.for(`probe${this.#markerCount}`),
    );
    const write = this.#newWrite('upsert', collection, 'probe', { isRepeated: true });
    this.#runningCount++;
    scheduler.after(0, clients, 'probe', async () => {
      await this.#write(client, write, nodeName);
      this.#runningCount--;
    });
  }

  async #act(client: Client): Promise<void> {
    const { dice } = client;
    const collection = dice.pick(this.#collections);
    const choice = dice.fraction();
    if (choice < 0.4) {
      await this.#read(client, {
        kind: 'read',
        collection,
        keys: ROW_KEYS,
        isStrong: dice.chance(0.4),
      });
      return;
    }
    if (choice < 0.44) {
      const write = this.#newWrite('alias', collection, `alias-${this.#markerCount}`, {});
      await this.#write(client, write);
      return;
    }
    if (choice < 0.48) {
      await this.#changeCollections(client);
      return;
    }
    const key = dice.pick(ROW_KEYS);
    const known = client.rows.get(`${collection} ${key}`);
    const kind = dice.pick(KINDS);
    const isConditional = dice.chance(0.4) && kind !== 'insert' && kind !== 'bulk';
    const write = this.#newWrite(kind, collection, key, {
      ifSequence: isConditional ? known : undefined,
      isRepeated: kind === 'upsert' && dice.chance(0.5),
    });
    await this.#write(client, write);
  }

  /** Creates a collection, or drops one that was created before. */
  async #changeCollections(client: Client): Promise<void> {
    if (this.#created.length > 0 && client.dice.chance(0.5)) {
      const [id] = this.#created.splice(client.dice.below(this.#created.length), 1);
      await this.#write(client, this.#newWrite('drop', id!, id!, {}));
      return;
    }
    const id = `c${client.dice.below(10)}-${this.#markerCount}`;
    const write = this.#newWrite('create', id, id, {});
    await this.#write(client, write);
    const { outcome } = this.writes.find((record) => record.write === write)!;
    if (outcome.kind === 'acknowledged') this.#created.push(id);
  }

  #newWrite(
    kind: Write['kind'],
    collection: string,
    key: string,
    { ifSequence, isRepeated = false }: { ifSequence?: number | undefined; isRepeated?: boolean },
  ): Write {
    const marker = `m${++this.#markerCount}`;
    const idempotencyKey = isRepeated ? `key-${marker}` : undefined;
    return { kind, collection, key, marker, ifSequence, idempotencyKey };
  }

  async #write(client: Client, write: Write, nodeName?: string): Promise<void> {
    const { scheduler, trace } = this.#cluster;
    const record: WriteRecord = {
      write,
      startedAtMs: scheduler.nowMs,
      endedAtMs: Number.POSITIVE_INFINITY,
      outcome: { kind: 'unknown' },
    };
    this.writes.push(record);
    for (let mayHaveHappened = false; ; ) {
      const node = nodeName ?? this.#anyNode(client);
      const outcome = await this.#attempt(client, write, node);
      const text =
        outcome.kind === 'acknowledged'
          ? `ok ${outcome.sequence}`
          : outcome.kind === 'refused'
            ? outcome.code
            : 'unknown';
      const condition = write.ifSequence === undefined ? '' : ` if ${write.ifSequence}`;
      trace.add(
        `client${client.number}`,
        `${write.kind} ${write.collection}/${write.key} ${write.marker}${condition} at ${node}: ${text}`,
      );
      mayHaveHappened ||= outcome.kind === 'unknown';
      const isOver = write.idempotencyKey === undefined || !isRepeatable(outcome);
      if (isOver || (this.#isStopped && nodeName === undefined)) {
        const isUnclear = outcome.kind === 'refused' && mayHaveHappened && isRepeatable(outcome);
        record.outcome = isUnclear ? { kind: 'unknown' } : outcome;
        record.endedAtMs = scheduler.nowMs;
        return;
      }
      await scheduler.sleep(client.dice.between(0, RETRY_MS));
    }
  }

  async #attempt(client: Client, write: Write, node: string): Promise<Outcome> {
    try {
      const { result } = await this.#send<{ sequence: number }>(client, write, node);
      const { sequence } = result;
      if (isOfCatalogue(write)) return { kind: 'acknowledged', sequence };
      client.saw(write.collection, sequence);
      if (write.kind === 'delete') client.rows.delete(`${write.collection} ${write.key}`);
      else client.rows.set(`${write.collection} ${write.key}`, sequence);
      return { kind: 'acknowledged', sequence };
    } catch (error) {
      if (!(error instanceof SagittaError)) {
        return { kind: 'unknown' };
      }
      if (error.code === 'outcome_unknown') return { kind: 'unknown' };
      return { kind: 'refused', code: codeOf(error) };
    }
  }

  async #read(client: Client, read: Read): Promise<void> {
    const { scheduler, trace } = this.#cluster;
    const startedAtMs = scheduler.nowMs;
    const node = this.#anyNode(client);
    const seenSequence = client.seenIn(read.collection);
    const what = `${read.isStrong ? 'strong ' : ''}read ${read.collection} at ${node}`;
    try {
      const { result } = await this.#send<ReadResult>(client, read, node);
      const endedAtMs = scheduler.nowMs;
      this.reads.push({
        read,
        client: client.number,
        node,
        startedAtMs,
        endedAtMs,
        result,
        seenSequence,
      });
      client.saw(read.collection, result.from);
      for (const { id, sequence } of result.rows)
        client.rows.set(`${read.collection} ${id}`, sequence);
      trace.add(`client${client.number}`, `${what}: ${result.from} to ${result.to}`);
    } catch (error) {
      trace.add(`client${client.number}`, `${what}: ${codeOf(error)}`);
    }
  }

  async #send<Result>(
    client: Client,
    operation: Write | Read,
    nodeName: string,
  ): Promise<Reply<Result>> {
    const { calls, clients, nodes } = this.#cluster;
    const node = nodes.find(({ name }) => name === nodeName)!;
    const request: NodeRequest = { operation, seen: client.session, forwarded: null };
    try {
      const reply = await calls.call<Reply<Result>>(clients, node.url, request);
      client.session = laterOf(client.session, reply.session);
      return reply;
    } catch (error) {
      const code = codeOf(error);
      const isDamage = code === 'data_corrupt' && this.#cluster.servers.hasRotted;
      if (error instanceof SagittaError && !isDamage && !ORDINARY.includes(code)) {
        this.#cluster.fail(`${operation.kind} at ${nodeName} failed: ${error.stack}`);
      }
      throw error;
    }
  }

  #anyNode({ dice }: Client): string {
    return dice.pick(this.#cluster.nodes).name;
  }
}

class Client {
  readonly number: number;
  readonly dice: Dice;
  session: LogPositions = {};
  /** The last known sequences of rows, by collection and id. */
  readonly rows = new Map<string, number>();
  readonly #seen = new Map<string, number>();

  constructor(number: number, dice: Dice) {
    this.number = number;
    this.dice = dice;
  }

  saw(collection: string, sequence: number): void {
    this.#seen.set(collection, Math.max(this.seenIn(collection), sequence));
  }

  seenIn(collection: string): number {
    return this.#seen.get(collection) ?? 0;
  }
}

function isRepeatable(outcome: Outcome): boolean {
  if (outcome.kind === 'unknown') return true;
  const passing = [...PASSING, 'idempotency_in_flight', 'storage_full'];
  return outcome.kind === 'refused' && passing.includes(outcome.code);
}

/** The code of the first issue where a body has several. */
function codeOf(error: unknown): string {
  const { code = (error as Error).name, issues } = error as {
    code?: string;
    issues?: readonly { code: string }[];
  };
  return issues?.[0]?.code ?? code;
}
