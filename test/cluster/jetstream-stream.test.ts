// When readers of streams open other consumers: with servers that deliver nothing by themselves, in virtual time.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import {
  type JetStreamConnection,
  JetStreamStream,
  Readers,
} from '../../src/cluster/service/jetstream-stream.js';
import { Changes } from '../../src/common/changes.js';

const STEP_MS = 1_000;

type Message = { readonly seq: number; readonly subject: string; readonly data: Uint8Array };

class SilentServers {
  openedCount = 0;
  readonly readers = new Readers();
  /** What the consumers that exist deliver; null ends one. */
  readonly #queues = new Set<(Message | null)[]>();
  readonly #changes = new Changes();

  get consumerCount(): number {
    return this.#queues.size;
  }

  deliver(seq: number): void {
    for (const queue of this.#queues) {
      queue.push({ seq, subject: 'quiet.barrier', data: new Uint8Array() });
    }
    this.#changes.notify();
  }

  openStream(): JetStreamStream {
    const client = { consumers: { get: async () => this.#open() } };
    const connection = { client, readers: this.readers } as unknown as JetStreamConnection;
    return new JetStreamStream(connection, 'quiet');
  }

  #open() {
    const queue: (Message | null)[] = [];
    const changes = this.#changes;
    this.#queues.add(queue);
    this.openedCount++;
    async function* read() {
      for (;;) {
        const message = await changes.until(() =>
          queue.length > 0 ? { is: queue.shift()! } : null,
        );
        if (message.is === null) return;
        yield message.is;
      }
    }
    const stop = () => {
      queue.push(null);
      changes.notify();
    };
    return {
      consume: async () => ({ [Symbol.asyncIterator]: read, stop }),
      delete: async () => this.#queues.delete(queue),
    };
  }
}

describe('a reader of a stream', () => {
  let servers: SilentServers;
  let isAwaited: boolean;
  let ending: AbortController;
  let reading: Promise<void>;
  const found: number[] = [];

  beforeEach(async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    mock.method(Math, 'random', () => 0.5);
    servers = new SilentServers();
    isAwaited = false;
    ending = new AbortController();
    found.length = 0;
    reading = read();
    await settle();
  });
  afterEach(async () => {
    ending.abort();
    await reading;
    mock.reset();
  });

  async function read(): Promise<void> {
    const options = { shards: undefined, signal: ending.signal, isAwaited: () => isAwaited };
    for await (const { position } of servers.openStream().read(0, options)) found.push(position);
  }

  async function settle(): Promise<void> {
    for (let i = 0; i < 20; i++) await turn();
  }

  /** Returns the number of consumers that were opened meanwhile. */
  async function pass(ms: number): Promise<number> {
    const before = servers.openedCount;
    for (let passedMs = 0; passedMs < ms; passedMs += STEP_MS) {
      mock.timers.tick(STEP_MS);
      await settle();
    }
    return servers.openedCount - before;
  }

  it('opens ever fewer consumers while it gets nothing and nobody waits, and removes the others', async () => {
    // After 3, 6, 12, 24, 48, 96 and 192 seconds.
    assert.equal(await pass(600_000), 7);
    assert.equal(await pass(3_600_000), 12);
    assert.equal(servers.consumerCount, 1);
  });

  it('opens one as soon as somebody waits, and again until the messages arrive', async () => {
    await pass(600_000);
    isAwaited = true;
    assert.equal(await pass(2_000), 1);
    assert.equal(await pass(6_000), 3);
    servers.deliver(1);
    isAwaited = false;
    await settle();
    assert.deepEqual(found, [1]);
    assert.equal(await pass(3_000), 1, 'a stream that is used is looked at soon');
  });

  it('opens none for somebody who waits for a moment', async () => {
    await pass(600_000);
    isAwaited = true;
    await pass(STEP_MS);
    isAwaited = false;
    assert.equal(await pass(STEP_MS), 0);
  });

  it('opens one when consumers may be gone', async () => {
    await pass(600_000);
    const { openedCount } = servers;
    servers.readers.restart();
    await settle();
    assert.equal(servers.openedCount, openedCount + 1);
    assert.equal(servers.consumerCount, 1);
  });

  it('leaves no consumer behind', async () => {
    ending.abort();
    await reading;
    assert.equal(servers.consumerCount, 0);
  });
});
