// A shared service that others may reach as well: what nodes write to it carries an HMAC-SHA-256 by a key of theirs, and
// nothing else is taken for a record, a claim or an announcement. Whoever reaches the service can read it, remove messages and
// stop the cluster, but not write in the name of a node. Messages of shards need no tag, since the record of their
// commit has their digests, and barriers none, since they say nothing.

import { type NodeKeys, TAG_BYTES } from '../../platform/node-keys.js';
import { logDamaged } from '../logs/chain-record.js';
import {
  type Channel,
  isHead,
  type MessageStream,
  type OutgoingMessage,
  type StreamMessage,
} from '../logs/message-stream.js';
import type { SharedService } from './shared-service.js';

export class SealedService implements SharedService {
  readonly #service: SharedService;
  readonly #keys: NodeKeys;

  constructor(service: SharedService, keys: NodeKeys) {
    this.#service = service;
    this.#keys = keys;
  }

  openStream(name: string): MessageStream {
    return new SealedStream(this.#service.openStream(name), this.#keys);
  }

  createLog(name: string, options?: Parameters<SharedService['createLog']>[1]): Promise<void> {
    return this.#service.createLog(name, options);
  }

  announce(bytes: Uint8Array): void {
    this.#service.announce(Buffer.concat([bytes, this.#keys.sign('members', bytes)]));
  }

  /** The listener does not hear of announcements that no node has made. */
  onAnnouncement(listener: (bytes: Uint8Array) => void): void {
    this.#service.onAnnouncement((sealed) => {
      const end = Math.max(0, sealed.length - TAG_BYTES);
      const bytes = sealed.subarray(0, end);
      if (this.#keys.verify('members', sealed.subarray(end), bytes)) listener(bytes);
    });
  }

  close(): Promise<void> {
    return this.#service.close();
  }
}

class SealedStream implements MessageStream {
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

  /** Throws `data_corrupt` at a record or a claim that no node has written. */
  async *read(
    afterPosition: number,
    options: Parameters<MessageStream['read']>[1],
  ): AsyncIterable<StreamMessage> {
    for await (const message of this.#stream.read(afterPosition, options)) {
      const { channel, position, bytes } = message;
      if (!isHead(channel)) {
        yield message;
        continue;
      }
      const end = Math.max(0, bytes.length - TAG_BYTES);
      const opened = bytes.subarray(0, end);
      if (!this.#keys.verify('logs', bytes.subarray(end), this.#contextOf(channel), opened)) {
        throw logDamaged(
          `Position ${position} of ${this.name}`,
          'it is not signed with the secret of this node. Either it was written with another SAGITTA_CLUSTER_SECRET, which must be the same on all nodes, or by somebody who is no node, or it was changed later',
        );
      }
      yield { channel, position, bytes: opened };
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
    return Buffer.concat([bytes, this.#keys.sign('logs', this.#contextOf(channel), bytes)]);
  }

  /** A message belongs to one stream and channel. Names have no line feed. */
  #contextOf(channel: Channel): string {
    return `${this.name}/${channel}\n`;
  }
}
