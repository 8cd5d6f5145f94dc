// A stream of messages in memory, for tests and models.

import { EventEmitter, once } from 'node:events';
import {
  HeadMovedError,
  isHead,
  isRead,
  type MessageStream,
  type OutgoingMessage,
  type StreamMessage,
} from './message-stream.js';

export interface MemoryStreamOptions {
  readonly name?: string;
  /**
   * Called before each publication. It may refuse the publication (`refuse`), carry it out and lose the reply
   * (`forget`), or carry it out only after the next publication and lose the reply (`delay`).
   */
  readonly fault?: () => 'refuse' | 'forget' | 'delay' | null;
}

export class MemoryStream implements MessageStream {
  readonly name: string;
  readonly #fault: NonNullable<MemoryStreamOptions['fault']>;
  readonly #changed = new EventEmitter().setMaxListeners(0);
  #messages: StreamMessage[] = [];
  #lastPosition = 0;
  #head = 0;
  #delayed: (() => void)[] = [];

  constructor({ name = 'memory', fault = () => null }: MemoryStreamOptions = {}) {
    this.name = name;
    this.#fault = fault;
  }

  async publish(messages: readonly OutgoingMessage[], expectedHead: number): Promise<number> {
    const copies = messages.map(({ channel, bytes }) => ({
      channel,
      bytes: new Uint8Array(bytes),
    }));
    const fault = this.#fault();
    if (fault === 'refuse') throw new Error('a refusal for the test');
    if (fault === 'delay') {
      this.#delayed.push(() => {
        if (this.#head === expectedHead) this.#append(copies);
      });
      throw new Error('a lost reply for the test');
    }
    const delayed = this.#delayed.splice(0);
    if (this.#head !== expectedHead) {
      for (const publish of delayed) publish();
      throw new HeadMovedError(this.name, expectedHead);
    }
    const position = this.#append(copies);
    for (const publish of delayed) publish();
    if (fault === 'forget') throw new Error('a lost reply for the test');
    return position;
  }

  async announce(channel: 'claim' | 'barrier', bytes: Uint8Array): Promise<number> {
    return this.#append([{ channel, bytes }]);
  }

  async *read(
    afterPosition: number,
    { shards, signal, onOpen }: Parameters<MessageStream['read']>[1],
  ): AsyncIterable<StreamMessage> {
    onOpen?.();
    let after = afterPosition;
    while (!signal.aborted) {
      const next = this.#firstAfter(after);
      if (next === undefined) {
        await once(this.#changed, 'change', { signal }).catch(() => {});
        continue;
      }
      after = next.position;
      if (isRead(next.channel, shards)) yield next;
    }
  }

  #firstAfter(position: number): StreamMessage | undefined {
    let low = 0;
    let high = this.#messages.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#messages[middle]!.position > position) high = middle;
      else low = middle + 1;
    }
    return this.#messages[low];
  }

  async firstPosition(): Promise<number | null> {
    return this.#messages[0]?.position ?? null;
  }

  async trimBefore(position: number): Promise<void> {
    this.#messages = this.#messages.filter((message) => message.position >= position);
  }

  async drop(): Promise<void> {
    this.#messages = [];
    this.#changed.emit('change');
  }

  /** Lets a test damage the stream. */
  change(change: (messages: StreamMessage[]) => StreamMessage[]): void {
    this.#messages = change(this.#messages);
  }

  #append(messages: readonly OutgoingMessage[]): number {
    for (const message of messages) {
      this.#messages.push({ ...message, position: ++this.#lastPosition });
      if (isHead(message.channel)) this.#head = this.#lastPosition;
    }
    this.#changed.emit('change');
    return this.#lastPosition;
  }
}
