// Writers of one log on three NATS servers take over from each other, while one server at a time is killed or halted.
// Afterwards every acknowledged commit must be in the log once, at its acknowledged position, and no denied one; two
// readers, one of which followed all the time, must have read the same.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { RequestError, TimeoutError } from '@nats-io/nats-core';
import { ChainedLog } from '../../../src/cluster/logs/chained-log.js';
import {
  type AppendOutcome,
  LOG_START,
  type LogLink,
  type LogRecord,
  type LogWriter,
} from '../../../src/cluster/logs/collection-log.js';
import { JetStreamStream } from '../../../src/cluster/service/jetstream-stream.js';
import { createRandom } from '../../database/harness.js';
import { roundsOf } from '../../hostile/harness/program.js';
import { eventually } from '../../support/waiting.js';
import { commitOf } from '../log-contract.js';
import { NatsServers } from '../nats-servers.js';

export interface LogFaultsOptions {
  readonly faultCount: number;
  /** No fault begins later than this after the start. */
  readonly durationMs?: number;
  readonly seed: number;
  readonly onFault?: (line: string) => void;
}

export interface LogFaultsReport {
  readonly acknowledgedCount: number;
  readonly deniedCount: number;
  readonly unknownCount: number;
  readonly takeOverCount: number;
  /** Times from each fault to the next acknowledgement. */
  readonly resumedMs: readonly number[];
}

/** All records but barriers. */
type LinkedRecord = Exclude<LogRecord, { kind: 'barrier' }>;

const SHARDS = [0, 1, 2];
const SERVERS = 3;
/** The pause after a fault, in which all replicas catch up. */
const CALM_MS = 3_000;
/** Commits acknowledged after each fault, at least. */
const COMMITS_PER_FAULT = 10;

export async function runLogFaults(options: LogFaultsOptions): Promise<LogFaultsReport> {
  const servers = await NatsServers.start(SERVERS);
  const run = new Run(servers, options);
  try {
    return await run.go();
  } finally {
    await run.close();
    await servers.stop();
  }
}

class Run {
  readonly #servers: NatsServers;
  readonly #options: LogFaultsOptions;
  readonly #random: () => number;
  readonly #connections: Awaited<ReturnType<NatsServers['connect']>>[] = [];
  readonly #ending = new AbortController();
  readonly #acknowledged = new Map<number, LogLink>();
  readonly #denied = new Set<number>();
  readonly #resumedMs: number[] = [];
  #unknownCount = 0;
  #takeOverCount = 0;
  #sequence = 0;
  #faultedAtMs: number | null = null;

  constructor(servers: NatsServers, options: LogFaultsOptions) {
    this.#servers = servers;
    this.#options = options;
    this.#random = createRandom(options.seed);
  }

  async go(): Promise<LogFaultsReport> {
    const log = await this.#open(true);
    const followed: LinkedRecord[] = [];
    const follower = await this.#open(false);
    const following = new AbortController();
    const follow = (async () => {
      for (let after = LOG_START; !following.signal.aborted; ) {
        try {
          for await (const record of follower.read(after, { signal: following.signal })) {
            if (record.kind === 'barrier') continue;
            followed.push(record);
            after = record.link;
          }
        } catch (error) {
          if ((error as { code?: string }).code === 'data_corrupt') throw error;
          await sleep(100);
        }
      }
    })();
    const writing = ['a', 'b'].map((owner) => this.#write(owner));
    const { faultCount: count, durationMs } = this.#options;
    for (const fault of roundsOf({ count, durationMs })) await this.#disturb(fault);
    this.#ending.abort(new Error('the run ends'));
    await Promise.all(writing);
    const read = await this.#readAll(log);
    while (followed.length < read.length) await sleep(100);
    following.abort();
    await follow;
    assert.deepEqual(followed.map(digestOf), read.map(digestOf));
    this.#check(read);
    return {
      acknowledgedCount: this.#acknowledged.size,
      deniedCount: this.#denied.size,
      unknownCount: this.#unknownCount,
      takeOverCount: this.#takeOverCount,
      resumedMs: this.#resumedMs,
    };
  }

  async close(): Promise<void> {
    for (const connection of this.#connections) await connection.close();
  }

  async #open(isNew: boolean): Promise<ChainedLog> {
    const connection = await this.#servers.connect();
    this.#connections.push(connection);
    const stream = new JetStreamStream(connection, 'faults', { publishMsMax: 2_000 });
    if (isNew) await stream.create({ replicas: SERVERS, messageBytesMax: 1_000_000 });
    return new ChainedLog(stream);
  }

  async #readAll(log: ChainedLog): Promise<LinkedRecord[]> {
    const { signal } = new AbortController();
    for (;;) {
      const records: LinkedRecord[] = [];
      try {
        for await (const record of log.readToEnd(LOG_START, { signal })) {
          if (record.kind !== 'barrier') records.push(record);
        }
        return records;
      } catch (error) {
        const isTimeout = error instanceof TimeoutError || error instanceof RequestError;
        if (!isTimeout) throw error;
      }
    }
  }

  /** Takes over, writes until another one has, and waits for its next turn. */
  async #write(owner: string): Promise<void> {
    const log = await this.#open(false);
    let applied = LOG_START;
    while (!this.#ending.signal.aborted) {
      const writer = await log
        .takeOver({
          owner,
          after: applied,
          onRecord: (record) => {
            if (record.kind !== 'barrier') applied = record.link;
          },
          signal: this.#ending.signal,
        })
        .catch(() => null);
      if (writer !== null) {
        this.#takeOverCount++;
        await this.#writeUntilFenced(writer);
        applied = writer.head;
      }
      await sleep(1_000 + this.#random() * 4_000, undefined, { signal: this.#ending.signal }).catch(
        () => {},
      );
    }
  }

  async #writeUntilFenced(writer: LogWriter): Promise<void> {
    // An unfinished commit is settled even when the run ends.
    const { signal } = new AbortController();
    while (!this.#ending.signal.aborted) {
      const sequence = ++this.#sequence;
      const shards = Object.fromEntries(
        SHARDS.filter(() => this.#random() < 0.6).map((shard) => [
          shard,
          this.#random() < 0.1 ? 700_000 : 1_500,
        ]),
      );
      let outcome: AppendOutcome = await writer.append(commitOf(sequence, shards));
      if (outcome.kind === 'unknown') {
        this.#unknownCount++;
        outcome = await writer.settle(signal);
      }
      if (outcome.kind !== 'committed') {
        this.#denied.add(sequence);
        if (outcome.kind === 'fenced') return;
        continue;
      }
      this.#acknowledged.set(sequence, outcome.link);
      if (this.#faultedAtMs !== null) {
        this.#resumedMs.push(performance.now() - this.#faultedAtMs);
        this.#faultedAtMs = null;
      }
    }
  }

  async #disturb(number: number): Promise<void> {
    const server = Math.floor(this.#random() * SERVERS);
    const kind = this.#random() < 0.5 ? 'kill' : 'halt';
    const lastsMs = 500 + this.#random() * 5_000;
    this.#options.onFault?.(
      `fault ${number + 1}: ${kind} server ${server} for ${lastsMs.toFixed(0)} ms; ${this.#acknowledged.size} commits acknowledged`,
    );
    this.#faultedAtMs = performance.now();
    this.#servers.signal(server, kind === 'kill' ? 'SIGKILL' : 'SIGSTOP');
    await sleep(lastsMs);
    if (kind === 'kill') await this.#servers.restart(server);
    else this.#servers.signal(server, 'SIGCONT');
    await sleep(CALM_MS);
    const enough = this.#acknowledged.size + COMMITS_PER_FAULT;
    await eventually('commits after the fault', () => this.#acknowledged.size >= enough);
  }

  #check(read: readonly LinkedRecord[]): void {
    const found = new Map<number, LogLink>();
    for (const record of read) {
      if (record.kind !== 'commit') continue;
      const { firstSequence, fragments } = record.commit;
      assert.ok(!found.has(firstSequence), `commit ${firstSequence} is there twice`);
      found.set(firstSequence, record.link);
      const shards = Object.fromEntries(fragments.map(({ shard, bytes }) => [shard, bytes.length]));
      assert.deepEqual(
        fragments.map(({ bytes }) => Buffer.from(bytes)),
        commitOf(firstSequence, shards).fragments.map(({ bytes }) => Buffer.from(bytes)),
      );
    }
    for (const [sequence, link] of this.#acknowledged) {
      assert.deepEqual(found.get(sequence), link, `commit ${sequence}, which was acknowledged`);
    }
    for (const sequence of this.#denied) {
      assert.ok(!found.has(sequence), `commit ${sequence}, which was denied, is there`);
    }
    assert.equal(found.size, this.#acknowledged.size);
  }
}

function digestOf({ link }: LinkedRecord): string {
  return `${link.position} ${link.digest}`;
}
