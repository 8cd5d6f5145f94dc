// An ordered stream of messages that several processes append to, on which chained-log.ts builds the log of a
// collection.

/**
 * `chain`: the records of the chain. `claim`: announcements of processes that want to become the writer. `barrier`:
 * messages that only mark a moment. A number: fragments of commits for the shard with this number.
 */
export type Channel = 'chain' | 'claim' | 'barrier' | number;

export interface OutgoingMessage {
  readonly channel: Channel;
  readonly bytes: Uint8Array;
}

export interface StreamMessage extends OutgoingMessage {
  /** 1 or more, and greater than that of the message before. */
  readonly position: number;
}

/** The methods of a stream that readers of the chain use. */
export interface MessageSource {
  /** Names the stream in errors. */
  readonly name: string;
  /**
   * Yields the messages after a position as they are appended: those of the named channels, and those of the given
   * shards, by default of all. Returns when the signal is aborted. `onOpen` is called when the stream answers. `isAwaited`
   * tells whether somebody waits for messages, as by default: then the reader soon makes sure that it misses none.
   */
  read(
    afterPosition: number,
    options: {
      readonly shards: readonly number[] | undefined;
      readonly signal: AbortSignal;
      readonly onOpen?: () => void;
      readonly isAwaited?: () => boolean;
    },
  ): AsyncIterable<StreamMessage>;
  /** The position of the first message that has not been removed; null for an empty stream. */
  firstPosition(): Promise<number | null>;
}

export interface MessageStream extends MessageSource {
  /**
   * Appends all messages or none, in order and with no others between them, if the head is at `expectedHead`: the
   * position of the last record or claim, 0 if there is none. The last message, and no other, belongs to the chain.
   * Resolves with its position when all messages are durable. When it rejects, they may be in the stream nevertheless,
   * or appear later.
   */
  publish(messages: readonly OutgoingMessage[], expectedHead: number): Promise<number>;
  /** Appends a message wherever the head is. When it rejects, the message may appear later. */
  announce(channel: 'claim' | 'barrier', bytes: Uint8Array): Promise<number>;
  trimBefore(position: number): Promise<void>;
  drop(): Promise<void>;
}

/** Whether a writer must have read the messages of a channel before it appends. */
export function isHead(channel: Channel): boolean {
  return channel === 'chain' || channel === 'claim';
}

/** Whether a reader of these shards, undefined for all, gets the messages of a channel. */
export function isRead(channel: Channel, shards: readonly number[] | undefined): boolean {
  return typeof channel !== 'number' || shards === undefined || shards.includes(channel);
}

/** Another record or claim has been, or is being, appended. Whether it stays is not known yet. */
export class HeadMovedError extends Error {
  constructor(stream: string, expectedHead: number, options?: ErrorOptions) {
    super(`The head of ${stream} is not at position ${expectedHead} any more.`, options);
  }
}
