// A stream of messages on NATS JetStream. The channels are subjects: `<name>.head.chain`, `<name>.head.claim`,
// `<name>.barrier` and `<name>.shard.<number>`. A publication is an atomic batch, whose last message expects the
// sequence of the last message below `<name>.head`.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Consumer,
  type ConsumerMessages,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
} from '@nats-io/jetstream';
import {
  createInbox,
  headers,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  nuid,
  RequestError,
  TimeoutError,
} from '@nats-io/nats-core';
import { assert, SagittaError } from '../../common/errors.js';
import { whenAborted } from '../../common/when-aborted.js';
import {
  type Channel,
  HeadMovedError,
  isHead,
  isRead,
  type MessageStream,
  type OutgoingMessage,
  type StreamMessage,
} from '../logs/message-stream.js';

/** How JetStream numbers the refusal of an expected sequence. */
const WRONG_LAST_SEQUENCE = [10070, 10071, 10164];
/** The JetStream cluster has no leader. */
const JETSTREAM_UNAVAILABLE = 10008;
/** A stream with this name has other settings. */
const STREAM_EXISTS = 10058;
/**
 * A leader that is gone does not reply, and a publication cannot be sent twice: what became of it is then found out with
 * messages that can (`ChainedLog`), which takes as long as the election of another leader.
 */
const PUBLISH_MS_MAX = 2_000;
/** A leader that is gone does not reply, so a message that may be sent twice is sent again, first after this time. */
const ANNOUNCE_MS_MIN = 500;
const NO_RESPONDERS_MS = 50;
/**
 * How often a reader looks whether it gets messages. It opens another consumer if it got none since the last look, and
 * somebody waited for them at both.
 */
const LOOK_MS = 1_000;
/**
 * A reader also opens another one if it gets nothing for this long although nobody waits. Each one after that gets about
 * twice as long, up to the limit: creating one costs the servers about as much as a write, and many logs may be idle.
 */
const QUIET_MS_MIN = 3_000;
const QUIET_MS_MAX = 300_000;
/** Bytes of messages that the server sends ahead of the reader. */
const AHEAD_BYTES_MAX = 32 * 1024 * 1024;
/**
 * How long a reader waits for a consumer, which only the leader of the JetStream cluster creates, and for how long after
 * that it reads without one.
 */
const CONSUMER_MS_MAX = 1_000;
const WITHOUT_CONSUMER_MS = 3_000;
const FETCH_PAUSE_MS = 100;
const FETCH_MS_MAX = 2_000;
/** Messages of one fetch; the servers send at most so many. */
const FETCHED_MAX = 1_000;
const FETCHED_BYTES_MAX = 8 * 1024 * 1024;

export interface StreamSettings {
  /** 3 for a cluster: a message is durable once most of the replicas have synced it. */
  readonly replicas: number;
  readonly messageBytesMax: number;
}

interface OpenConsumer {
  readonly messages: ConsumerMessages;
  /** Ends the messages, and removes the consumer from the server. */
  stop(): void;
}

/** The readers of streams over one connection. */
export class Readers {
  /** Each lets a reader open another consumer. */
  readonly #restarts = new Set<() => void>();
  /** When a consumer could not be created last, on `performance.now`. */
  noConsumerAtMs = Number.NEGATIVE_INFINITY;

  /** Returns the function that removes it. */
  add(restart: () => void): () => void {
    this.#restarts.add(restart);
    return () => this.#restarts.delete(restart);
  }

  /** Called when consumers may be gone, as those on a server that is gone are: their readers would notice later. */
  restart(): void {
    for (const restart of [...this.#restarts]) restart();
  }
}

export interface JetStreamConnection {
  readonly connection: NatsConnection;
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly readers: Readers;
}

export class JetStreamStream implements MessageStream {
  readonly name: string;
  readonly #jetStream: JetStreamConnection;
  readonly #publishMsMax: number;

  /** `name`: letters, digits, - and _. */
  constructor(
    jetStream: JetStreamConnection,
    name: string,
    { publishMsMax = PUBLISH_MS_MAX }: { readonly publishMsMax?: number } = {},
  ) {
    assert(/^[\w-]+$/.test(name), `the name of a stream: ${name}`);
    this.name = name;
    this.#jetStream = jetStream;
    this.#publishMsMax = publishMsMax;
  }

  /**
   * Creates the stream, unless it exists. Throws `configuration_invalid` if it exists with other settings than those that
   * the log relies on; the number of replicas and the size of messages may differ.
   */
  async create({ replicas, messageBytesMax }: StreamSettings): Promise<void> {
    const { streams } = this.#jetStream.manager;
    const settings = {
      subjects: [`${this.name}.>`],
      storage: 'file',
      allow_atomic: true,
      // A full stream refuses new messages; by default it would remove old ones.
      discard: 'new',
      deny_delete: true,
      // Every replica answers reads, also without a leader.
      allow_direct: true,
    } as const;
    const others = {
      num_replicas: replicas,
      max_msg_size: messageBytesMax,
      // The chain accepts one of two messages for the same head, so the server need not find duplicates.
      duplicate_window: 0,
    };
    try {
      await streams.add({
        name: this.name,
        ...settings,
        subjects: [...settings.subjects],
        ...others,
      });
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== STREAM_EXISTS) throw error;
      const { config } = await streams.info(this.name);
      requireSettings(this.name, settings, config as unknown as Readonly<Record<string, unknown>>);
    }
  }

  async publish(messages: readonly OutgoingMessage[], expectedHead: number): Promise<number> {
    const { connection } = this.#jetStream;
    const batchId = nuid.next();
    const last = messages.length - 1;
    const headersOf = (index: number) => {
      const batch = headers();
      batch.set('Nats-Batch-Id', batchId);
      batch.set('Nats-Batch-Sequence', String(index + 1));
      return batch;
    };
    // Only the last message gets a reply: it commits the batch or says why it was refused.
    for (const [index, { channel, bytes }] of messages.slice(0, last).entries()) {
      connection.publish(this.#subjectOf(channel), bytes, { headers: headersOf(index) });
    }
    const commit = messages.length === 1 ? headers() : headersOf(last);
    if (messages.length > 1) commit.set('Nats-Batch-Commit', '1');
    commit.set('Nats-Expected-Last-Subject-Sequence', String(expectedHead));
    commit.set('Nats-Expected-Last-Subject-Sequence-Subject', `${this.name}.head.*`);
    const { channel, bytes } = messages[last]!;
    try {
      return await this.#request(channel, bytes, commit, this.#publishMsMax);
    } catch (error) {
      if (!(error instanceof RefusedError) || !WRONG_LAST_SEQUENCE.includes(error.number))
        throw error;
      throw new HeadMovedError(this.name, expectedHead, { cause: error });
    }
  }

  async announce(channel: 'claim' | 'barrier', bytes: Uint8Array): Promise<number> {
    const deadlineMs = performance.now() + this.#publishMsMax;
    for (let waitMs = ANNOUNCE_MS_MIN; ; ) {
      const leftMs = Math.max(1, deadlineMs - performance.now());
      // The last attempt gets all the time that is left.
      const msMax = 3 * waitMs > leftMs ? leftMs : waitMs;
      try {
        return await this.#request(channel, bytes, headers(), msMax);
      } catch (error) {
        if (performance.now() >= deadlineMs) throw error;
        if (error instanceof TimeoutError) waitMs *= 2;
        // A stream that is new, or elects its leader, has no responders.
        else if (error instanceof RequestError && error.isNoResponders())
          await sleep(NO_RESPONDERS_MS);
        else throw error;
      }
    }
  }

  async *read(
    afterPosition: number,
    { shards, signal, onOpen, isAwaited = () => true }: Parameters<MessageStream['read']>[1],
  ): AsyncIterable<StreamMessage> {
    let after = afterPosition;
    let quietMsMax = QUIET_MS_MIN;
    while (!signal.aborted) {
      const opened = await this.#consume(after, shards);
      onOpen?.();
      if (opened === null) {
        for await (const message of this.#fetch(after)) {
          after = message.position;
          if (isRead(message.channel, shards)) yield message;
        }
        await sleep(FETCH_PAUSE_MS, undefined, { signal }).catch(() => {});
        continue;
      }
      const { messages, stop } = opened;
      // In rare cases a consumer hangs for tens of seconds. Only a new one tells that from a stream without messages.
      let quietMs = 0;
      let wasAwaited = false;
      const watchdog = setInterval(() => {
        quietMs += LOOK_MS;
        const isLate = wasAwaited && isAwaited();
        wasAwaited = isAwaited();
        if (isLate || quietMs >= quietMsMax) stop();
      }, LOOK_MS);
      const stopWaiting = whenAborted(signal, stop);
      const remove = this.#jetStream.readers.add(stop);
      try {
        if (signal.aborted) return;
        for await (const { seq, subject, data } of messages) {
          watchdog.refresh();
          quietMs = 0;
          wasAwaited = false;
          quietMsMax = QUIET_MS_MIN;
          if (seq <= after) continue;
          after = seq;
          yield { position: seq, channel: this.#channelOf(subject), bytes: data };
        }
      } finally {
        clearInterval(watchdog);
        stopWaiting();
        remove();
        stop();
      }
      quietMsMax = quietMs < quietMsMax ? QUIET_MS_MIN : nextQuietMsMax(quietMsMax);
    }
  }

  /**
   * The next messages that the replica which answers has, at most `FETCHED_MAX`. They may lack the newest ones, which the
   * reader notices as it knows the position of a barrier.
   */
  async *#fetch(after: number): AsyncIterable<StreamMessage> {
    const { connection } = this.#jetStream;
    const inbox = createInbox();
    const replies = connection.subscribe(inbox);
    const request = { seq: after + 1, batch: FETCHED_MAX, max_bytes: FETCHED_BYTES_MAX };
    connection.publish(`$JS.API.DIRECT.GET.${this.name}`, JSON.stringify(request), {
      reply: inbox,
    });
    const deadline = setTimeout(() => replies.unsubscribe(), FETCH_MS_MAX);
    try {
      for await (const { headers: found, data } of replies) {
        const subject = found?.get('Nats-Subject') ?? '';
        // The reply after the last message, or instead of the first, is a status.
        if (subject === '') return;
        const position = Number(found!.get('Nats-Sequence'));
        yield { position, channel: this.#channelOf(subject), bytes: data };
      }
    } finally {
      clearTimeout(deadline);
      replies.unsubscribe();
    }
  }

  async firstPosition(): Promise<number | null> {
    const { state } = await this.#jetStream.manager.streams.info(this.name);
    return state.messages === 0 ? null : state.first_seq;
  }

  async trimBefore(position: number): Promise<void> {
    try {
      await this.#jetStream.manager.streams.purge(this.name, { seq: position });
    } catch (error) {
      // Servers that have lost a replica may trim the stream and never reply.
      if (!(error instanceof TimeoutError) || !(await this.#isTrimmedBefore(position))) throw error;
    }
  }

  async drop(): Promise<void> {
    await this.#jetStream.manager.streams.delete(this.name);
  }

  async #isTrimmedBefore(position: number): Promise<boolean> {
    const first = await this.firstPosition();
    return first === null || first >= position;
  }

  /** Null if no consumer can be created at the moment. */
  async #consume(
    after: number,
    shards: readonly number[] | undefined,
  ): Promise<OpenConsumer | null> {
    const { client, readers } = this.#jetStream;
    if (performance.now() - readers.noConsumerAtMs < WITHOUT_CONSUMER_MS) return null;
    const channels: Channel[] = ['chain', 'claim', 'barrier', ...(shards ?? [])];
    const subjects = channels.map((channel) => this.#subjectOf(channel));
    const opened = client.consumers
      .get(this.name, {
        filter_subjects: shards === undefined ? [`${this.name}.>`] : subjects,
        deliver_policy: 'by_start_sequence',
        opt_start_seq: after + 1,
      })
      .then(open);
    const timer = new AbortController();
    const late = sleep(CONSUMER_MS_MAX, null, { signal: timer.signal }).catch(() => null);
    try {
      const consumer = await Promise.race([opened, late]);
      if (consumer !== null) return consumer;
    } catch (error) {
      const isPassing = error instanceof JetStreamApiError && error.code === JETSTREAM_UNAVAILABLE;
      if (!isPassing && !(error instanceof TimeoutError)) throw error;
    } finally {
      timer.abort();
    }
    opened.then(
      ({ stop }) => stop(),
      () => {},
    );
    readers.noConsumerAtMs = performance.now();
    return null;
  }

  /** Sends a message and returns its position. Throws RefusedError when the stream refuses it. */
  async #request(
    channel: Channel,
    bytes: Uint8Array,
    sent: MsgHdrs,
    msMax: number,
  ): Promise<number> {
    const { connection } = this.#jetStream;
    const reply: Msg = await connection.request(this.#subjectOf(channel), bytes, {
      headers: sent,
      timeout: msMax,
    });
    const { error, seq } = reply.json<{
      seq?: number;
      error?: { err_code?: number; description?: string };
    }>();
    if (error !== undefined) {
      throw new RefusedError(this.name, error.err_code ?? 0, error.description ?? 'no reason');
    }
    assert(typeof seq === 'number', `a sequence in ${reply.string()}`);
    return seq;
  }

  #subjectOf(channel: Channel): string {
    if (typeof channel === 'number') return `${this.name}.shard.${channel}`;
    return `${this.name}.${isHead(channel) ? 'head.' : ''}${channel}`;
  }

  #channelOf(subject: string): Channel {
    const last = subject.slice(subject.lastIndexOf('.') + 1);
    return last === 'chain' || last === 'claim' || last === 'barrier' ? last : Number(last);
  }
}

function requireSettings(
  stream: string,
  expected: Readonly<Record<string, unknown>>,
  found: Readonly<Record<string, unknown>>,
): void {
  const differences = Object.entries(expected).flatMap(([name, value]) => {
    const [wanted, existing] = [JSON.stringify(value), JSON.stringify(found[name])];
    return wanted === existing ? [] : `${name} ${existing ?? 'unset'} instead of ${wanted}`;
  });
  if (differences.length === 0) return;
  throw new SagittaError(
    'configuration_invalid',
    `The log ${stream} in JetStream has other settings than this version of Sagitta gives it: found ${differences.join(', ')}. Another version has created it, or somebody has edited it. Set them back (nats stream edit ${stream}), or bring the data into a new cluster: docs/cluster.md, Update.`,
  );
}

async function open(consumer: Consumer): Promise<OpenConsumer> {
  const messages = await consumer.consume({ max_bytes: AHEAD_BYTES_MAX });
  let isStopped = false;
  return {
    messages,
    stop() {
      if (isStopped) return;
      isStopped = true;
      messages.stop();
      // Otherwise the server would keep it for five minutes. If it is gone with its server, there is nothing to remove.
      consumer.delete().catch(() => {});
    },
  };
}

/** Chance keeps the readers of many streams, which a node opens at the same time, from going on in step. */
function nextQuietMsMax(quietMsMax: number): number {
  return Math.min(QUIET_MS_MAX, quietMsMax * (1.5 + Math.random()));
}

class RefusedError extends Error {
  /** JetStream's number of the error. */
  readonly number: number;

  constructor(stream: string, number: number, description: string) {
    super(`The stream ${stream} refused a message: ${description} (error ${number}).`);
    this.number = number;
  }
}
