// A stream of messages in the store of this process, to which nothing else can append.

import { EventEmitter, once } from 'node:events';
import type { Store } from '../../storage/store.js';
import {
  type Channel,
  HeadMovedError,
  isHead,
  isRead,
  type MessageStream,
  type OutgoingMessage,
  type StreamMessage,
} from './message-stream.js';

/** The number of the channel, before each record of the store's log. Shards come after the named channels. */
const CHANNEL_BYTES = 4;
const NAMED: readonly Channel[] = ['chain', 'claim', 'barrier'];

export class StoreStream implements MessageStream {
  readonly name: string;
  readonly #store: Store;
  readonly #appended = new EventEmitter().setMaxListeners(0);
  #lastPosition: number;
  #head: number;
  /** The last publication; the next one waits for it. */
  #publishing: Promise<unknown> = Promise.resolve();

  /** `name`: the log in the store, whose positions are read. */
  constructor(store: Store, name: string) {
    this.#store = store;
    this.name = name;
    this.#lastPosition = 0;
    this.#head = 0;
    for (const { position, channel } of this.#messages(0)) {
      this.#lastPosition = position;
      if (isHead(channel)) this.#head = position;
    }
  }

  publish(messages: readonly OutgoingMessage[], expectedHead: number): Promise<number> {
    return this.#inOrder(() => {
      if (this.#head === expectedHead) return this.#append(messages);
      throw new HeadMovedError(this.name, expectedHead);
    });
  }

  announce(channel: 'claim' | 'barrier', bytes: Uint8Array): Promise<number> {
    return this.#inOrder(() => this.#append([{ channel, bytes }]));
  }

  async *read(
    afterPosition: number,
    { shards, signal }: { shards: readonly number[] | undefined; signal: AbortSignal },
  ): AsyncIterable<StreamMessage> {
    let after = afterPosition;
    while (!signal.aborted) {
      for (const message of this.#messages(after)) {
        after = message.position;
        if (isRead(message.channel, shards)) yield message;
        if (signal.aborted) return;
      }
      if (after >= this.#lastPosition) {
        await once(this.#appended, 'append', { signal }).catch(() => {});
      }
    }
  }

  async firstPosition(): Promise<number | null> {
    for (const { position } of this.#messages(0)) return position;
    return null;
  }

  async trimBefore(position: number): Promise<void> {
    await this.#store.commit([{ kind: 'trim', log: this.name, throughSequence: position - 1 }]);
  }

  async drop(): Promise<void> {
    await this.#store.commit([{ kind: 'dropLog', log: this.name }]);
  }

  #inOrder(publish: () => Promise<number>): Promise<number> {
    const publishing = this.#publishing.then(publish);
    this.#publishing = publishing.catch(() => {});
    return publishing;
  }

  async #append(messages: readonly OutgoingMessage[]): Promise<number> {
    const first = this.#lastPosition + 1;
    await this.#store.commit(
      messages.map(({ channel, bytes }, i) => {
        const record = new Uint8Array(CHANNEL_BYTES + bytes.length);
        new DataView(record.buffer).setUint32(0, numberOf(channel), true);
        record.set(bytes, CHANNEL_BYTES);
        return { kind: 'append', log: this.name, sequence: first + i, record };
      }),
    );
    this.#lastPosition += messages.length;
    if (isHead(messages.at(-1)!.channel)) this.#head = this.#lastPosition;
    this.#appended.emit('append');
    return this.#lastPosition;
  }

  *#messages(afterPosition: number): Iterable<StreamMessage> {
    for (const { sequence, record } of this.#store.readLog(this.name, afterPosition)) {
      const view = new DataView(record.buffer, record.byteOffset);
      yield {
        position: sequence,
        channel: channelOf(view.getUint32(0, true)),
        bytes: record.subarray(CHANNEL_BYTES),
      };
    }
  }
}

function numberOf(channel: Channel): number {
  return typeof channel === 'number' ? channel + NAMED.length : NAMED.indexOf(channel);
}

function channelOf(number: number): Channel {
  return NAMED[number] ?? number - NAMED.length;
}
