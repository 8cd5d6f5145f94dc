// What a simulated node shares with the others: streams on the log servers, and announcements. Timeouts and repetitions
// are those of src/cluster/service.

import {
  HeadMovedError,
  isRead,
  type MessageStream,
  type OutgoingMessage,
  type StreamMessage,
} from '../../../src/cluster/logs/message-stream.js';
import type { ServiceState, SharedService } from '../../../src/cluster/service/shared-service.js';
import { whenAborted } from '../../../src/common/when-aborted.js';
import type { Refusal, ServerLink, ServerStream } from './log-servers.js';
import type { SimProcess } from './scheduler.js';

const REQUEST_MS_MAX = 5_000;
const ANNOUNCE_MS_MIN = 500;
const STALL_MS = 3_000;
/** How long the servers must be silent before a node says so. */
const SILENT_MS_MAX = 3_000;
/** How far a replica that a consumer reads from is behind at most, apart from rare cases. */
const BEHIND_MS_MAX = 3;
const FAR_BEHIND_MS_MAX = 2_000;
const FAR_BEHIND_CHANCE = 0.02;
/** The chance that a consumer reads from a replica with rot. */
const ROTTEN_CHANCE = 0.3;

class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/** The announcements of all nodes. */
export class AnnouncementBus {
  readonly #services = new Set<SimulatedService>();

  add(service: SimulatedService): void {
    this.#services.add(service);
  }

  /** Removes what a process that has died listens with. */
  remove(process: SimProcess): void {
    for (const service of this.#services) {
      if (service.link.process === process) this.#services.delete(service);
    }
  }

  get all(): Iterable<SimulatedService> {
    return this.#services;
  }
}

export class SimulatedService implements SharedService {
  readonly link: ServerLink;
  readonly #bus: AnnouncementBus;
  readonly #listeners: ((bytes: Uint8Array) => void)[] = [];
  #kind: ServiceState['kind'] = 'connected';
  #sinceMs = 0;
  #badSinceMs: number | null = null;

  constructor(link: ServerLink, bus: AnnouncementBus) {
    this.link = link;
    this.#bus = bus;
    bus.add(this);
  }

  /** Judges the connection as src/cluster/service/nats-monitor.ts does, when it is asked. */
  get state(): ServiceState {
    const { network, servers, process, scheduler } = this.link;
    const { name } = process.machine;
    const isUp = network.isUp(name, 'nats') && network.isUp('nats', name);
    const isGood = isUp && servers.hasQuorum && servers.hasLeader;
    if (isGood) this.#badSinceMs = null;
    else this.#badSinceMs ??= scheduler.nowMs;
    const isSilent =
      this.#badSinceMs !== null && scheduler.nowMs - this.#badSinceMs >= SILENT_MS_MAX;
    const kind = !isSilent ? 'connected' : isUp ? 'no_quorum' : 'disconnected';
    if (kind !== this.#kind) {
      this.#kind = kind;
      this.#sinceMs = performance.now();
    }
    return {
      kind,
      detail: 'The simulated servers are out of reach.',
      sinceMs: this.#sinceMs,
      servers: [],
    };
  }

  openStream(name: string): MessageStream {
    return new SimulatedStream(this.link, name);
  }

  async createLog(name: string): Promise<void> {
    const { servers } = this.link;
    await request<true>(this.link, 'create', (reply) => {
      if (!servers.hasLeader || !servers.hasQuorum) return;
      servers.create(name);
      reply(true);
    });
  }

  announce(bytes: Uint8Array): void {
    const { network, servers, process } = this.link;
    const copy = new Uint8Array(bytes);
    network.send(process.machine, servers.process, 'announce', () => {
      for (const { link, receive } of this.#bus.all) {
        if (link.process === process) continue;
        network.send(servers.process.machine, link.process, 'announced', () => receive(copy));
      }
    });
  }

  readonly receive = (bytes: Uint8Array): void => {
    for (const listener of this.#listeners) listener(bytes);
  };

  onAnnouncement(listener: (bytes: Uint8Array) => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    this.#bus.remove(this.link.process);
  }
}

/** Sends a request to the servers and waits for the reply. `handle` runs in the process of the servers. */
function request<Result>(
  { network, servers, process }: ServerLink,
  label: string,
  handle: (reply: (result: Result) => void) => void,
  msMax = REQUEST_MS_MAX,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new TimeoutError(`${label}: no reply`)), msMax);
    network.send(process.machine, servers.process, label, () => {
      handle((result) => {
        network.send(servers.process.machine, process, `${label} reply`, () => {
          clearTimeout(timer);
          resolve(result);
        });
      });
    });
  });
}

class SimulatedStream implements MessageStream {
  readonly name: string;
  readonly #link: ServerLink;

  constructor(link: ServerLink, name: string) {
    this.#link = link;
    this.name = name;
  }

  async publish(messages: readonly OutgoingMessage[], expectedHead: number): Promise<number> {
    const { servers } = this.#link;
    // The caller may reuse the bytes.
    const sent = messages.map(({ channel, bytes }) => ({ channel, bytes: new Uint8Array(bytes) }));
    const result = await request<number | Refusal>(this.#link, 'publish', (reply) =>
      servers.propose(this.name, sent, expectedHead, reply),
    );
    return this.#positionOf(result, expectedHead);
  }

  async announce(channel: 'claim' | 'barrier', bytes: Uint8Array): Promise<number> {
    const { servers } = this.#link;
    const deadlineMs = performance.now() + REQUEST_MS_MAX;
    for (let waitMs = ANNOUNCE_MS_MIN; ; waitMs *= 2) {
      const leftMs = Math.max(1, deadlineMs - performance.now());
      try {
        const result = await request<number | Refusal>(
          this.#link,
          channel,
          (reply) => servers.propose(this.name, [{ channel, bytes }], null, reply),
          3 * waitMs > leftMs ? leftMs : waitMs,
        );
        return this.#positionOf(result, 0);
      } catch (error) {
        if (!(error instanceof TimeoutError) || performance.now() >= deadlineMs) throw error;
      }
    }
  }

  #positionOf(result: number | Refusal, expectedHead: number): number {
    if (typeof result === 'number') return result;
    if (result.kind === 'head') throw new HeadMovedError(this.name, expectedHead);
    throw new Error(`there is no log ${this.name}`);
  }

  async *read(
    after: number,
    { shards, signal, onOpen }: Parameters<MessageStream['read']>[1],
  ): AsyncIterable<StreamMessage> {
    let last = after;
    while (!signal.aborted) {
      const consumer = await Consumer.open(this.#link, this.name);
      onOpen?.();
      try {
        for (;;) {
          const messages = consumer.after(last);
          for (const message of messages) {
            if (signal.aborted) return;
            last = message.position;
            if (isRead(message.channel, shards)) yield message;
          }
          if (messages.length > 0) continue;
          if (!(await consumer.whenMore(signal))) break;
        }
      } finally {
        consumer.close();
      }
    }
  }

  async firstPosition(): Promise<number | null> {
    return await this.#manage<number | null>('info', (stream) =>
      stream.first > stream.committedPosition ? null : stream.first,
    );
  }

  async trimBefore(position: number): Promise<void> {
    await this.#manage('purge', (stream) => {
      stream.first = Math.max(stream.first, Math.min(position, stream.committedPosition + 1));
      return true;
    });
  }

  async drop(): Promise<void> {
    await this.#manage('drop', () => {
      this.#link.servers.drop(this.name);
      return true;
    });
  }

  async #manage<Result>(label: string, use: (stream: ServerStream) => Result): Promise<Result> {
    const { servers } = this.#link;
    const result = await request<{ readonly value: Result } | null>(this.#link, label, (reply) => {
      if (!servers.hasLeader || !servers.hasQuorum) return;
      const stream = servers.streams.get(this.name);
      reply(stream === undefined ? null : { value: use(stream) });
    });
    if (result === null) throw new Error(`there is no log ${this.name}`);
    return result.value;
  }
}

/** Reads one replica of a stream, which may be behind. */
class Consumer {
  readonly #link: ServerLink;
  readonly #stream: ServerStream;
  readonly #behindMs: number;
  /** The position of a message that this replica lacks or has damaged; 0 for none. */
  readonly #rottenPosition: number;
  readonly #isDamaged: boolean;
  readonly #stopListening: () => void;
  /** The last position that the replica has, as far as this node knows. */
  #known = 0;
  #wake: (() => void) | null = null;

  private constructor(link: ServerLink, stream: ServerStream, known: number) {
    this.#link = link;
    this.#stream = stream;
    this.#known = known;
    const { dice } = link.process;
    const isFar = dice.chance(FAR_BEHIND_CHANCE);
    this.#behindMs = dice.fraction() * (isFar ? FAR_BEHIND_MS_MAX : BEHIND_MS_MAX);
    const isRotten = link.servers.isRotten && dice.chance(ROTTEN_CHANCE);
    this.#rottenPosition = isRotten ? 1 + dice.below(known) : 0;
    this.#isDamaged = dice.chance(0.5);
    this.#stopListening = stream.onCommit((position) => this.#push(position));
  }

  static async open(link: ServerLink, name: string): Promise<Consumer> {
    const { servers } = link;
    const found = await request<{ stream: ServerStream; known: number } | null>(
      link,
      'consume',
      (reply) => {
        if (!servers.hasLeader) return;
        const stream = servers.streams.get(name);
        reply(stream === undefined ? null : { stream, known: stream.committedPosition });
      },
    );
    if (found === null) throw new Error(`there is no log ${name}`);
    return new Consumer(link, found.stream, found.known);
  }

  after(position: number): StreamMessage[] {
    if (this.#stream.isDropped) return [];
    const messages = this.#stream.between(position, this.#known);
    const at = messages.findIndex((message) => message.position === this.#rottenPosition);
    if (at < 0) return messages;
    const { bytes, ...message } = messages[at]!;
    const damaged = Uint8Array.from(bytes, (byte, i) => (i === bytes.length >> 1 ? ~byte : byte));
    messages.splice(at, 1, ...(this.#isDamaged ? [{ ...message, bytes: damaged }] : []));
    return messages;
  }

  /** Resolves with true when there may be more, and with false when another consumer should be opened. */
  whenMore(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (mayContinue: boolean) => {
        clearTimeout(timer);
        ignoreAbort();
        this.#wake = null;
        resolve(mayContinue);
      };
      const timer = setTimeout(() => end(false), STALL_MS);
      const ignoreAbort = whenAborted(signal, () => end(false));
      this.#wake = () => end(true);
    });
  }

  close(): void {
    this.#stopListening();
  }

  #push(position: number): void {
    const { scheduler, network, servers, process } = this.#link;
    scheduler.after(this.#behindMs, servers.process, 'replicate', () => {
      network.send(servers.process.machine, process, 'push', () => {
        this.#known = Math.max(this.#known, position);
        this.#wake?.();
      });
    });
  }
}
