// The servers of the logs, like JetStream as src/cluster/service/jetstream-stream.ts uses it: a message is proposed by
// the leader of a stream, which refuses further messages for the same head meanwhile, and counts once most servers have
// it. A new leader may lack what was only proposed, or commit it later; a publisher that gets no reply does not know.

import {
  isHead,
  type OutgoingMessage,
  type StreamMessage,
} from '../../../src/cluster/logs/message-stream.js';
import type { Dice } from './dice.js';
import type { Network } from './network.js';
import { type Scheduler, SimProcess } from './scheduler.js';

const COMMIT_MS_MIN = 0.2;
const COMMIT_MS_MAX = 3;
/** The chance that a server that leads anew commits a proposal of the leader before it. */
const KEPT_CHANCE = 0.5;

export interface Refusal {
  readonly kind: 'head' | 'stream';
}
type Reply = (result: number | Refusal) => void;

interface Proposal {
  readonly messages: readonly StreamMessage[];
  /** Null once the leader that would reply is gone. */
  reply: Reply | null;
}

export class ServerStream {
  readonly name: string;
  /** Every message that was ever committed. */
  readonly history: StreamMessage[] = [];
  /** The position of the first message that has not been removed. */
  first = 1;
  isDropped = false;
  readonly #proposals: Proposal[] = [];
  readonly #listeners = new Set<(lastPosition: number) => void>();
  #lastPosition = 0;
  #head = 0;

  constructor(name: string) {
    this.name = name;
  }

  get committedPosition(): number {
    return this.history.length;
  }

  get hasProposals(): boolean {
    return this.#proposals.length > 0;
  }

  /** The committed messages after a position and up to another one; positions are dense. */
  between(after: number, through: number): StreamMessage[] {
    return this.history.slice(Math.max(after, this.first - 1), through);
  }

  /** Returns false for another head than expected; null expects none. */
  propose(
    messages: readonly OutgoingMessage[],
    expectedHead: number | null,
    reply: Reply,
  ): boolean {
    if (expectedHead !== null && expectedHead !== this.#head) return false;
    const placed = messages.map(({ channel, bytes }): StreamMessage => {
      const position = ++this.#lastPosition;
      if (isHead(channel)) this.#head = position;
      return { channel, bytes: new Uint8Array(bytes), position };
    });
    this.#proposals.push({ messages: placed, reply });
    return true;
  }

  commitNext(): void {
    const proposal = this.#proposals.shift();
    if (proposal === undefined) return;
    this.history.push(...proposal.messages);
    proposal.reply?.(this.committedPosition);
    for (const listener of this.#listeners) listener(this.committedPosition);
  }

  /** Another server leads: it has the first `keptCount` proposals, and nobody gets a reply from the one before. */
  failOver(keep: () => boolean): void {
    const kept = this.#proposals.findIndex((proposal) => {
      proposal.reply = null;
      return !keep();
    });
    if (kept >= 0) this.#proposals.splice(kept);
    for (const proposal of this.#proposals) proposal.reply = null;
    const all = [...this.history, ...this.#proposals.flatMap(({ messages }) => messages)];
    this.#lastPosition = all.length;
    this.#head = all.findLast(({ channel }) => isHead(channel))?.position ?? 0;
  }

  onCommit(listener: (lastPosition: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export class LogServers {
  readonly process: SimProcess;
  readonly streams = new Map<string, ServerStream>();
  /** Streams that were dropped, for what they contained. */
  readonly dropped: ServerStream[] = [];
  readonly #scheduler: Scheduler;
  readonly #dice: Dice;
  #hasQuorum = true;
  #hasLeader = true;
  #isSlow = false;
  #isRotten = false;
  /** Whether any replica was ever damaged, so that nodes and clients may get errors. */
  hasRotted = false;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    this.#dice = scheduler.dice.for('servers');
    const machine = { name: 'nats', wallOffsetMs: 0 };
    this.process = new SimProcess('nats', machine, this.#dice, 0);
  }

  get hasQuorum(): boolean {
    return this.#hasQuorum;
  }

  /** Whether requests are answered at all. */
  get hasLeader(): boolean {
    return this.#hasLeader;
  }

  /** Whether some replicas lack messages or have damaged ones. */
  get isRotten(): boolean {
    return this.#isRotten;
  }

  setRotten(isRotten: boolean): void {
    this.#isRotten = isRotten;
    this.hasRotted ||= isRotten;
  }

  setSlow(isSlow: boolean): void {
    this.#isSlow = isSlow;
  }

  /** Without a quorum, a leader accepts proposals that it cannot commit. */
  loseQuorum(): void {
    this.#hasQuorum = false;
  }

  regainQuorum(): void {
    this.#hasQuorum = true;
    for (const stream of this.streams.values()) if (stream.hasProposals) this.#commitSoon(stream);
  }

  /** The leaders of all streams are gone until `electLeaders`. */
  loseLeaders(): void {
    this.#hasLeader = false;
  }

  electLeaders(): void {
    for (const stream of this.streams.values()) {
      stream.failOver(() => this.#dice.chance(KEPT_CHANCE));
      if (stream.hasProposals) this.#commitSoon(stream);
    }
    this.#hasLeader = true;
  }

  create(name: string): void {
    if (!this.streams.has(name)) this.streams.set(name, new ServerStream(name));
  }

  drop(name: string): void {
    const stream = this.streams.get(name);
    if (stream === undefined) return;
    stream.isDropped = true;
    this.streams.delete(name);
    this.dropped.push(stream);
  }

  /** Handles a request in the process of the servers. Without a leader, nothing replies. */
  propose(
    name: string,
    messages: readonly OutgoingMessage[],
    expectedHead: number | null,
    reply: Reply,
  ): void {
    if (!this.#hasLeader) return;
    const stream = this.streams.get(name);
    if (stream === undefined) reply({ kind: 'stream' });
    else if (!stream.propose(messages, expectedHead, reply)) reply({ kind: 'head' });
    else this.#commitSoon(stream);
  }

  #commitSoon(stream: ServerStream): void {
    const slow = this.#isSlow ? 300 : 1;
    const delayMs = this.#dice.between(COMMIT_MS_MIN, COMMIT_MS_MAX) * slow;
    this.#scheduler.after(delayMs, this.process, 'commit', () => {
      if (!this.#hasQuorum || !this.#hasLeader) return;
      while (stream.hasProposals) stream.commitNext();
    });
  }
}

/** What a node sees of the servers over the network. */
export interface ServerLink {
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly servers: LogServers;
  readonly process: SimProcess;
}
