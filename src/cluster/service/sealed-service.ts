// A shared service that others may reach, too. Records, claims and announcements carry an HMAC-SHA-256 with a key of the
// nodes, and those without a valid one are refused. Anyone who reaches the service can read it, remove messages and stop
// the cluster, but cannot write in the name of a node. Messages of shards need no tag, since the record of their commit
// contains their digests, and barriers need none, since they carry no data.

import { SagittaError } from '../../common/errors.js';
import { LogLimiter } from '../../common/log-limiter.js';
import type { Logger } from '../../common/logger.js';
import { type NodeKeys, TAG_BYTES } from '../../platform/node-keys.js';
import { logDamaged } from '../logs/chain-record.js';
import {
  type Channel,
  isHead,
  type MessageStream,
  type OutgoingMessage,
  type StreamMessage,
} from '../logs/message-stream.js';
import type { ServiceState, SharedService } from './shared-service.js';

const CHECK_MS_MAX = 60_000;
/** The interval between two warnings about unsigned announcements. */
const WARN_MS = 60_000;
const UNSIGNED =
  'ignored an announcement that is not signed with the secret of this node (SAGITTA_CLUSTER_SECRET)';

export class SealedService implements SharedService {
  readonly #service: SharedService;
  readonly #keys: NodeKeys;
  readonly #logger: Logger;
  readonly #warnings = new LogLimiter({ intervalMs: WARN_MS });

  constructor(service: SharedService, keys: NodeKeys, logger: Logger) {
    this.#service = service;
    this.#keys = keys;
    this.#logger = logger;
  }

  get state(): ServiceState {
    return this.#service.state;
  }

  openStream(name: string): MessageStream {
    return new SealedStream(this.#service.openStream(name), this.#keys);
  }

  /** At a start, throws `configuration_invalid` for a log that nodes with another secret have written. */
  async createLog(
    name: string,
    options: Parameters<SharedService['createLog']>[1] = {},
  ): Promise<void> {
    await this.#service.createLog(name, options);
    // Otherwise this node would archive what it cannot read, and the others could not read what it writes.
    if (options.isStarting === true) await this.#requireSecret(this.#service.openStream(name));
  }

  async #requireSecret(stream: MessageStream): Promise<void> {
    const first = await stream.firstPosition();
    if (first === null) return;
    const end = await stream.announce('barrier', new Uint8Array());
    const options = { shards: [], signal: AbortSignal.timeout(CHECK_MS_MAX) };
    let isForeign = false;
    for await (const message of stream.read(first - 1, options)) {
      if (isHead(message.channel)) {
        // One record of these nodes is enough: others may be damaged, or older than this secret.
        if (open(this.#keys, stream.name, message) !== null) return;
        isForeign = true;
      }
      if (message.position >= end) break;
    }
    if (!isForeign) return;
    throw new SagittaError(
      'configuration_invalid',
      `Expected the same SAGITTA_CLUSTER_SECRET on all nodes of the cluster ${this.#keys.cluster}; found the log ${stream.name}, which nodes with another one have written. To change it, see docs/cluster.md.`,
    );
  }

  announce(bytes: Uint8Array): void {
    this.#service.announce(Buffer.concat([bytes, this.#keys.sign('members', bytes)]));
  }

  /** Announcements that are not from a node are dropped. */
  onAnnouncement(listener: (bytes: Uint8Array) => void): void {
    this.#service.onAnnouncement((sealed) => {
      const end = Math.max(0, sealed.length - TAG_BYTES);
      const bytes = sealed.subarray(0, end);
      if (this.#keys.verify('members', sealed.subarray(end), bytes)) listener(bytes);
      else if (this.#warnings.next() > 0) this.#logger.warn({}, UNSIGNED);
    });
  }

  close(): Promise<void> {
    return this.#service.close();
  }
}

/** The bytes of a record or a claim without their tag; null unless a node with these keys has written them. */
function open(keys: NodeKeys, stream: string, { channel, bytes }: OutgoingMessage) {
  const end = Math.max(0, bytes.length - TAG_BYTES);
  const opened = bytes.subarray(0, end);
  const isOurs = keys.verify('logs', bytes.subarray(end), contextOf(stream, channel), opened);
  return isOurs ? opened : null;
}

/** Binds a message to its stream and channel. Names contain no line feed. */
function contextOf(stream: string, channel: Channel): string {
  return `${stream}/${channel}\n`;
}

export class SealedStream implements MessageStream {
  readonly name: string;
  readonly #stream: MessageStream;
  readonly #keys: NodeKeys;

  constructor(stream: MessageStream, keys: NodeKeys) {
    this.name = stream.name;
    this.#stream = stream;
    this.#keys = keys;
  }

  publish(messages: readonly OutgoingMessage[], expectedHead: number): Promise<number> {
    const sealed = messages.map(({ channel, bytes }) => ({
      channel,
      bytes: this.#seal(channel, bytes),
    }));
    return this.#stream.publish(sealed, expectedHead);
  }

  announce(channel: 'claim' | 'barrier', bytes: Uint8Array): Promise<number> {
    return this.#stream.announce(channel, this.#seal(channel, bytes));
  }

  /** Throws `data_corrupt` at a record or a claim that is not from a node. */
  async *read(
    afterPosition: number,
    options: Parameters<MessageStream['read']>[1],
  ): AsyncIterable<StreamMessage> {
    for await (const message of this.#stream.read(afterPosition, options)) {
      const { channel, position } = message;
      if (!isHead(channel)) {
        yield message;
        continue;
      }
      const bytes = open(this.#keys, this.name, message);
      if (bytes === null) {
        throw logDamaged(
          `Position ${position} of ${this.name}`,
          'it is not signed with SAGITTA_CLUSTER_SECRET: it was changed, or written by a process that is not a node of this cluster',
        );
      }
      yield { channel, position, bytes };
    }
  }

  firstPosition(): Promise<number | null> {
    return this.#stream.firstPosition();
  }

  trimBefore(position: number): Promise<void> {
    return this.#stream.trimBefore(position);
  }

  drop(): Promise<void> {
    return this.#stream.drop();
  }

  #seal(channel: Channel, bytes: Uint8Array): Uint8Array {
    if (!isHead(channel)) return bytes;
    return Buffer.concat([bytes, this.#keys.sign('logs', contextOf(this.name, channel), bytes)]);
  }
}
