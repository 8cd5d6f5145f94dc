// The shared service of a cluster in memory, from which nodes can be cut off.

import { MemoryStream } from '../../src/cluster/logs/memory-stream.js';
import type { MessageStream, OutgoingMessage } from '../../src/cluster/logs/message-stream.js';
import type {
  LogServer,
  ServiceState,
  SharedService,
} from '../../src/cluster/service/shared-service.js';
import { whenAborted } from '../../src/common/when-aborted.js';
import { withResolvers } from '../support/waiting.js';

export class MemoryNetwork {
  readonly streams = new Map<string, MemoryStream>();
  readonly connections = new Set<MemoryService>();

  connect(): MemoryService {
    const service = new MemoryService(this);
    this.connections.add(service);
    return service;
  }
}

export class MemoryService implements SharedService {
  readonly #network: MemoryNetwork;
  readonly #listeners: ((bytes: Uint8Array) => void)[] = [];
  #isCutOff = false;
  /** `log`: null for all logs. */
  #held: { readonly log: string | null; readonly released: Promise<void> } | null = null;
  #announced: Uint8Array = new Uint8Array();
  /** The servers that store the log of the catalogue. */
  servers: readonly LogServer[] = [];

  constructor(network: MemoryNetwork) {
    this.#network = network;
  }

  get state(): ServiceState {
    const kind = this.#isCutOff ? 'disconnected' : 'connected';
    return { kind, detail: 'cut off for the test', sinceMs: 0, servers: this.servers };
  }

  openStream(name: string): MessageStream {
    return new CuttableStream(this, name, () => this.#network.streams.get(name));
  }

  async createLog(name: string): Promise<void> {
    this.requireConnection();
    if (this.#network.streams.has(name)) return;
    this.#network.streams.set(name, new MemoryStream({ name }));
  }

  removeLog(name: string): void {
    this.#network.streams.delete(name);
  }

  announce(bytes: Uint8Array): void {
    if (this.#isCutOff) return;
    this.#announced = bytes;
    for (const other of this.#network.connections) {
      if (!other.isCutOff) for (const listener of other.#listeners) listener(bytes);
    }
  }

  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  /** Cuts the node off. The others learn that immediately, so that no test depends on the speed of the machine. */
  cutOff(): void {
    const member = JSON.parse(Buffer.from(this.#announced).toString()) as { clockMs: number };
    const clockMs = member.clockMs + 0.001;
    this.announce(Buffer.from(JSON.stringify({ ...member, clockMs, state: 'leaving' })));
    this.#isCutOff = true;
  }

  /** Resolves when the log delivers messages and replies, or when the signal is aborted. */
  async whenReleased(log: string, signal?: AbortSignal): Promise<void> {
    const held = this.#held;
    if (held === null || (held.log !== null && held.log !== log) || signal?.aborted) return;
    const { promise: aborted, resolve } = withResolvers();
    const ignoreAbort = whenAborted(signal, resolve);
    await Promise.race([held.released, aborted]);
    ignoreAbort();
  }

  /**
   * Holds up the messages of one log, or of all, and the replies to publications, but not announcements, until the
   * function is called.
   */
  hold(log: string | null = null): () => void {
    const { promise: released, resolve } = withResolvers();
    this.#held = { log, released };
    return resolve;
  }

  reconnect(): void {
    this.#isCutOff = false;
  }

  onAnnouncement(listener: (bytes: Uint8Array) => void): void {
    this.#listeners.push(listener);
  }

  requireConnection(): void {
    if (this.#isCutOff) throw new Error('cut off for the test');
  }

  async close(): Promise<void> {
    this.#network.connections.delete(this);
  }
}

class CuttableStream implements MessageStream {
  readonly name: string;
  readonly #service: MemoryService;
  readonly #find: () => MemoryStream | undefined;

  constructor(service: MemoryService, name: string, find: () => MemoryStream | undefined) {
    this.#service = service;
    this.name = name;
    this.#find = find;
  }

  async publish(messages: readonly OutgoingMessage[], expectedHead: number): Promise<number> {
    const position = await this.#stream.publish(messages, expectedHead);
    await this.#service.whenReleased(this.name);
    return position;
  }

  async announce(channel: 'claim' | 'barrier', bytes: Uint8Array): Promise<number> {
    return this.#stream.announce(channel, bytes);
  }

  async *read(
    after: number,
    options: Parameters<MessageStream['read']>[1],
  ): ReturnType<MessageStream['read']> {
    for await (const message of this.#stream.read(after, options)) {
      await this.#service.whenReleased(this.name, options.signal);
      if (options.signal.aborted) return;
      this.#service.requireConnection();
      yield message;
    }
  }

  async firstPosition(): Promise<number | null> {
    return this.#stream.firstPosition();
  }

  async trimBefore(position: number): Promise<void> {
    return this.#stream.trimBefore(position);
  }

  async drop(): Promise<void> {
    this.#service.requireConnection();
    this.#service.removeLog(this.name);
  }

  get #stream(): MemoryStream {
    this.#service.requireConnection();
    const stream = this.#find();
    if (stream === undefined) throw new Error(`there is no log ${this.name}`);
    return stream;
  }
}
