// The clients of a run of faults: many small concurrent writes on every node, and reads. An acknowledgement is kept as one
// number, so that a run can have millions of them.

import { setTimeout as sleep } from 'node:timers/promises';
import { type AttemptReply, Connections } from '../../hostile/checker/attempt.js';
import type { NodeProcesses } from '../node-processes.js';
import type { WriteKind } from './readiness-watch.js';

/** The time after which a client asks another node. */
const WAIT_MS_MAX = 5_000;
const RETRY_MS = 50;
const READ_MS = 20;
const STRONG_READ_MS = 200;
const CATALOGUE_MS = 300;
const CATALOGUE_ATTEMPTS_MAX = 20;
/** One of this many writes has an idempotency key, and would appear twice if it were carried out twice. */
const KEYED_EVERY = 16;
/** Ids per request of the final comparison. */
const COMPARED_AT_ONCE = 1_000;
const JSON_HEADERS = { 'content-type': 'application/json' };

/** The longest time without an event. */
class Gap {
  #lastAtMs = performance.now();
  #longestMs = 0;

  /** Restarts the measurement. */
  begin(): void {
    this.#lastAtMs = performance.now();
    this.#longestMs = 0;
  }

  note(): void {
    this.#longestMs = this.longestMs;
    this.#lastAtMs = performance.now();
  }

  get longestMs(): number {
    return Math.max(this.#longestMs, performance.now() - this.#lastAtMs);
  }
}

export interface Comparison {
  readonly acknowledged: number;
  /** Acknowledged writes that a node lacks, or has at another sequence. */
  lost: number;
  /** Sequences of no write, or of two. */
  doubled: number;
  /** Descriptions of the first failures. */
  readonly details: string[];
}

export interface WritersOptions {
  readonly nodes: NodeProcesses;
  readonly collection: string;
  /** Concurrent writers on each node. */
  readonly writersPerNode: number;
  /** The replication factor; null for all nodes. */
  readonly replicationFactor: number | null;
  /** Called with each acknowledgement; the time at which the attempt began is on `performance.now`. */
  readonly onAcknowledged: (node: string, kind: WriteKind, begunAtMs: number) => void;
}

export class Writers {
  readonly writeGap = new Gap();
  readonly readGap = new Gap();
  /** Replies that no client may get. */
  readonly faults: string[] = [];
  readonly #nodes: NodeProcesses;
  readonly #options: WritersOptions;
  readonly #connections = new Map<string, Connections>();
  /** Sequences by the number of the write; 0 if its reply was lost. */
  readonly #sequences: number[] = [];
  #acknowledgedCount = 0;
  #repeatedCount = 0;
  #readCount = 0;
  #highest = 0;
  #next = 0;
  #isEnding = false;
  #working: Promise<void>[] = [];

  constructor(options: WritersOptions) {
    this.#options = options;
    this.#nodes = options.nodes;
  }

  get acknowledgedCount(): number {
    return this.#acknowledgedCount;
  }

  /** Attempts that were refused or got no reply, and were repeated. */
  get repeatedCount(): number {
    return this.#repeatedCount;
  }

  get readCount(): number {
    return this.#readCount;
  }

  async createCollection(): Promise<void> {
    const { collection: id, replicationFactor: replication_factor } = this.#options;
    const body = JSON.stringify({ id, dimension: 2, metric: 'dot', replication_factor });
    const headers = { ...JSON_HEADERS, 'idempotency-key': id };
    await this.#until(() => this.#anyNode(), {
      method: 'POST',
      path: '/v1/collections',
      headers,
      body,
    });
    for (const node of this.#nodes.names) await this.#record(node);
  }

  async deleteCollection(): Promise<void> {
    await this.#until(() => this.#anyNode(), { method: 'DELETE', path: this.#path }, [200, 404]);
  }

  start(): void {
    this.writeGap.begin();
    this.readGap.begin();
    for (const node of this.#nodes.names) {
      for (let i = 0; i < this.#options.writersPerNode; i++) this.#working.push(this.#write(node));
      this.#working.push(this.#read(node), this.#readStrongly(node), this.#changeCatalogue(node));
    }
  }

  /** Resolves when every write that was begun is acknowledged. */
  async stop(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(this.#working);
  }

  close(): void {
    for (const connections of this.#connections.values()) connections.close();
  }

  /** Compares the rows of every node with the acknowledged writes, after the writers have stopped. */
  async compare(): Promise<Comparison> {
    const acknowledged = this.#acknowledgedCount;
    const comparison: Comparison = { acknowledged, lost: 0, doubled: 0, details: [] };
    const tell = (detail: string) => {
      if (comparison.details.length < 20) comparison.details.push(detail);
    };
    const seen = new Set<number>();
    for (const sequence of this.#sequences) {
      if (sequence === 0) continue;
      if (seen.has(sequence)) {
        comparison.doubled++;
        tell(`the sequence ${sequence} was acknowledged twice`);
      }
      seen.add(sequence);
    }
    const found = new Map<number, string>();
    for (const node of this.#nodes.names) {
      const { count, sequence } = await this.#record(node);
      if (count !== acknowledged || sequence !== acknowledged) {
        comparison.doubled += Math.max(0, sequence - acknowledged);
        tell(
          `${node} has ${count} rows at sequence ${sequence}; ${acknowledged} were acknowledged`,
        );
      }
      for (let from = 0; from < this.#next; from += COMPARED_AT_ONCE) {
        const sequences = await this.#sequencesOn(node, from);
        for (const [i, told] of this.#sequences.slice(from, from + COMPARED_AT_ONCE).entries()) {
          const id = idOf(from + i);
          const has = sequences.get(id);
          // All nodes must agree, also on writes whose reply was lost.
          const expected = told === 0 ? (found.get(from + i) ?? String(has)) : String(told);
          found.set(from + i, expected);
          if (has !== undefined && String(has) === expected) continue;
          comparison.lost++;
          tell(`${id} was acknowledged at ${expected}; ${node} has it at ${has ?? 'no sequence'}`);
        }
      }
    }
    return comparison;
  }

  get #path(): string {
    return `/v1/collections/${this.#options.collection}`;
  }

  #anyNode(): string {
    const { names } = this.#nodes;
    return names[Math.floor(Math.random() * names.length)]!;
  }

  async #write(home: string): Promise<void> {
    while (!this.#isEnding) {
      const number = this.#next++;
      const id = idOf(number);
      const isKeyed = number % KEYED_EVERY === 0;
      const call = {
        method: 'POST',
        path: `${this.#path}/vectors`,
        headers: isKeyed
          ? { ...JSON_HEADERS, 'idempotency-key': `${this.#options.collection}-${id}` }
          : JSON_HEADERS,
        body: `{"vectors":[{"id":"${id}","values":[${number % 97},1]}],"mode":"${isKeyed ? 'upsert' : 'insert'}"}`,
      };
      let node = home;
      for (let mayBeThere = false; ; ) {
        const begunAtMs = performance.now();
        const { reply, mayHaveArrived } = await this.#connectionsTo(node).send(call);
        if (reply?.status === 200) {
          this.#options.onAcknowledged(node, 'rows', begunAtMs);
          const { sequence } = JSON.parse(reply.text) as { sequence: number };
          this.#acknowledge(number, sequence);
          break;
        }
        if (mayBeThere && reply !== null && codeOf(reply) === 'vector_exists') {
          this.#acknowledge(number, 0);
          break;
        }
        if (reply !== null && !mayBeRepeated(reply)) {
          throw new Error(`the write ${id} on ${node} was refused: ${reply.status} ${reply.text}`);
        }
        mayBeThere ||= mayHaveArrived;
        this.#repeatedCount++;
        // Another node is asked only after a failure, so that a node that hangs does not stop all writers.
        node = this.#anyNode();
        await sleep(RETRY_MS);
      }
    }
  }

  #acknowledge(number: number, sequence: number): void {
    this.#sequences[number] = sequence;
    this.#acknowledgedCount++;
    this.#highest = Math.max(this.#highest, sequence);
    this.writeGap.note();
  }

  /** The number of rows must never decrease. */
  async #read(node: string): Promise<void> {
    let least = 0;
    while (!this.#isEnding) {
      await sleep(READ_MS);
      const found = await this.#tryRecord(node, false);
      if (found === null) continue;
      const { count, sequence } = found;
      this.#readCount++;
      this.readGap.note();
      // Each write inserts one row.
      if (count !== sequence) this.faults.push(`${node} has ${count} rows at sequence ${sequence}`);
      if (sequence < least) this.faults.push(`${node} went back from ${least} to ${sequence}`);
      least = sequence;
    }
  }

  /** Points an alias to the collection at an interval, also while earlier attempts wait. */
  async #changeCatalogue(node: string): Promise<void> {
    const { collection } = this.#options;
    const path = `/v1/aliases/${collection}-${node}`;
    const running = new Set<Promise<void>>();
    while (!this.#isEnding) {
      await sleep(CATALOGUE_MS);
      if (running.size >= CATALOGUE_ATTEMPTS_MAX) continue;
      const attempt = this.#pointAlias(node, path).finally(() => running.delete(attempt));
      running.add(attempt);
    }
    await Promise.all(running);
    await this.#until(() => node, { method: 'DELETE', path }, [200, 404]);
  }

  async #pointAlias(node: string, path: string): Promise<void> {
    const { collection, onAcknowledged } = this.#options;
    const begunAtMs = performance.now();
    const { reply } = await this.#connectionsTo(node).send({
      method: 'PUT',
      path,
      headers: JSON_HEADERS,
      body: JSON.stringify({ collection }),
    });
    if (reply?.status === 200) onAcknowledged(node, 'catalogue', begunAtMs);
    else if (reply !== null && !mayBeRepeated(reply)) {
      this.faults.push(`an alias on ${node} was refused: ${reply.status} ${reply.text}`);
    }
  }

  /** Strong reads must contain everything that any node has acknowledged. */
  async #readStrongly(node: string): Promise<void> {
    while (!this.#isEnding) {
      await sleep(STRONG_READ_MS);
      const least = this.#highest;
      const found = await this.#tryRecord(node, true);
      if (found === null) continue;
      this.#readCount++;
      if (found.sequence >= least) continue;
      this.faults.push(
        `a strong read on ${node} was at ${found.sequence}, but ${least} had been acknowledged`,
      );
    }
  }

  #connectionsTo(node: string): Connections {
    const url = this.#nodes.urlOf(node)!;
    let connections = this.#connections.get(url);
    if (connections === undefined) {
      connections = new Connections(url, WAIT_MS_MAX);
      this.#connections.set(url, connections);
    }
    return connections;
  }

  async #tryRecord(node: string, isStrong: boolean) {
    const { reply } = await this.#connectionsTo(node).send({
      method: 'GET',
      path: this.#path,
      headers: { 'sagitta-consistency': isStrong ? 'strong' : 'default' },
    });
    return reply?.status === 200 && !isElsewhere(reply) ? recordOf(reply) : null;
  }

  async #record(node: string) {
    const headers = { 'sagitta-consistency': 'strong' };
    return recordOf(await this.#until(() => node, { method: 'GET', path: this.#path, headers }));
  }

  async #sequencesOn(node: string, from: number): Promise<ReadonlyMap<string, number>> {
    const count = Math.min(COMPARED_AT_ONCE, this.#next - from);
    const ids = Array.from({ length: count }, (_, i) => idOf(from + i));
    const { text } = await this.#until(() => node, {
      method: 'POST',
      path: `${this.#path}/vectors/fetch`,
      headers: JSON_HEADERS,
      body: JSON.stringify({
        ids,
        include_sequence: true,
        include_values: false,
        include_metadata: false,
      }),
    });
    const { vectors } = JSON.parse(text) as { vectors: { id: string; sequence: number }[] };
    return new Map(vectors.map(({ id, sequence }) => [id, sequence]));
  }

  async #until(
    choose: () => string,
    call: Parameters<Connections['send']>[0],
    statuses: readonly number[] = [200],
  ): Promise<AttemptReply> {
    for (;;) {
      const { reply } = await this.#connectionsTo(choose()).send(call);
      if (reply !== null && statuses.includes(reply.status)) return reply;
      await sleep(RETRY_MS);
    }
  }
}

function idOf(number: number): string {
  return `w${number}`;
}

function recordOf({ text }: AttemptReply) {
  const { vector_count: count, sequence } = JSON.parse(text) as {
    vector_count: number;
    sequence: number;
  };
  return { count, sequence };
}

/** A record without counts, since no node that holds them has answered. */
function isElsewhere({ text }: AttemptReply): boolean {
  return (JSON.parse(text) as { status?: string }).status === 'elsewhere';
}

function codeOf({ text }: AttemptReply): string | undefined {
  return (JSON.parse(text) as { code?: string }).code;
}

/** Whether a refusal is temporary. */
function mayBeRepeated(reply: AttemptReply): boolean {
  const { status } = reply;
  if (status === 429 || status === 503 || status === 504) return true;
  if (status === 507) return codeOf(reply) === 'storage_full';
  return status === 409 && codeOf(reply) === 'idempotency_in_flight';
}
