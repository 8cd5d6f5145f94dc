// What a log is made of: an ordered stream of messages that several processes append to. chained-log.ts makes the
// log of a collection of it.

/**
 * `chain`: the records of the chain. `claim`: announcements of whoever wants to be the writer. `barrier`: messages that
 * only mark a moment. A number: parts of commits for the shard of this number.
 */
export type Channel = 'chain' | 'claim' | 'barrier' | number;

export interface OutgoingMessage {
  readonly channel: Channel;
  readonly bytes: Uint8Array;
}

export interface StreamMessage extends OutgoingMessage {
  /** Greater than that of the message before it; 1 or more. */
  readonly position: number;
}

export interface MessageStream {
  /** For messages. */
  readonly name: string;
  /**
   * Appends all messages or none, in order and without others between them, if the head is at `expectedHead`: the
   * last message of the chain or claim, 0 if there is none. The last message, and no other, belongs to the chain.
   * Resolves with its position when all are durable. When it rejects, they may be in the stream nevertheless, or
   * appear later.
   */
  publish(messages: readonly OutgoingMessage[], expectedHead: number): Promise<number>;
  /** Appends a message wherever the head is. When it rejects, the message may appear later. */
  announce(channel: 'claim' | 'barrier', bytes: Uint8Array): Promise<number>;
  /**
   * Messages after a position as they are committed: those of the named channels, and those of these shards; of
   * all shards by default. Returns when the signal is aborted.
   */
  read(
    afterPosition: number,
    options: { readonly shards: readonly number[] | undefined; readonly signal: AbortSignal },
  ): AsyncIterable<StreamMessage>;
  /** The position of the first message that has not been removed; null without messages. */
  firstPosition(): Promise<number | null>;
  trimBefore(position: number): Promise<void>;
  drop(): Promise<void>;
}

/** Whether messages of the channel are those that a writer must know before it appends. */
export function isHead(channel: Channel): boolean {
  return channel === 'chain' || channel === 'claim';
}

/** Another message of the chain or a claim is there, or is being appended. Whether it stays is not known yet. */
export class HeadMovedError extends Error {
  constructor(stream: string, expectedHead: number, options?: ErrorOptions) {
    super(`The head of ${stream} is not at position ${expectedHead} any more.`, options);
  }
}
