// Sends the requests of all clients to one collection and records them together with the replies.

import type { Attempt, AttemptReply, Call, Sender } from './attempt.js';
import { createHistory, type FaultKind, type History, type WriteRecord } from './history.js';
import type { Change, Counts, Metric } from './model.js';
import { explainCounts, explainRefusal } from './reads.js';
import type { OpenStream } from './streams.js';

/** A write under an idempotency key, which may be repeated. */
export interface KeyedWrite {
  readonly call: Call;
  readonly record: WriteRecord;
  /** The first reply; null while there is none. */
  reply: AttemptReply | null;
  /** When the first reply arrived. */
  answeredAt: number;
  /** The life of the service in which it was last sent or answered. */
  life: number;
}

/** Replies saying that the write had no effect because of the state. */
const REFUSALS = new Set(['vector_exists', 'vector_not_found', 'precondition_failed']);
/** Replies that clients must expect at any time. Unless `mayHaveEffect`, the write had no effect. */
const BUSY = new Set([429, 503, 504]);
/** Number of keyed writes kept to be repeated. */
const KEYED_MAX = 300;

export interface Counters {
  writes: number;
  unknownWrites: number;
  refusals: number;
  reads: number;
  replays: number;
  /** Pages that were read again, read after a restart, or refused because the snapshot was too old. */
  pagesAgain: number;
  pagesAfterRestart: number;
  pagesOfOtherNodes: number;
  cursorsExpired: number;
  streams: number;
  streamsResumed: number;
  busy: number;
}

export function createCounters(): Counters {
  return {
    writes: 0,
    unknownWrites: 0,
    refusals: 0,
    reads: 0,
    replays: 0,
    pagesAgain: 0,
    pagesAfterRestart: 0,
    pagesOfOtherNodes: 0,
    cursorsExpired: 0,
    streams: 0,
    streamsResumed: 0,
    busy: 0,
  };
}

export class Recorder {
  readonly history: History;
  readonly counters: Counters;
  /** Requests without a reply so far. */
  readonly unanswered = new Set<KeyedWrite>();
  readonly answered: KeyedWrite[] = [];
  /** To be repeated until they are complete. */
  readonly openStreams = new Set<OpenStream>();
  /** For messages. */
  lastExchange = 'nothing was sent';
  /** Number of starts of the service. */
  life = 0;
  /** The highest acknowledged sequence. */
  sequence = 0;
  #sender!: Sender;
  #nextNumber = 1;
  #unsettled: WriteRecord[] = [];

  constructor(id: string, metric: Metric, counters: Counters) {
    this.history = createHistory(id, metric);
    this.counters = counters;
  }

  get collection(): string {
    return this.history.collection;
  }

  get path(): string {
    return `/v1/collections/${this.collection}`;
  }

  /** Begins a new life of the service. */
  connect(sender: Sender): void {
    this.#sender = sender;
    this.life++;
  }

  takeTag(): string {
    return `${this.collection}-${this.#nextNumber++}`;
  }

  async send(call: Call): Promise<Attempt> {
    const attempt = await this.#sender.send(call);
    const { reply } = attempt;
    const said = reply === null ? 'no reply' : `${reply.status} ${reply.text.slice(0, 300)}`;
    this.lastExchange = `${call.method} ${call.path}: ${said}`;
    return attempt;
  }

  fault(kind: FaultKind, detail: string): void {
    this.history.faults.push({ kind, detail });
  }

  unexpected(title: string, { status, text }: AttemptReply): void {
    this.fault('unexpected reply', `${title}: status ${status}, ${text.slice(0, 500)}`);
  }

  /** Requests sent before this time can no longer take effect, unless they are repeated. */
  settle(at: number): void {
    const open = new Set([
      ...[...this.unanswered].map(({ record }) => record),
      ...[...this.openStreams].flatMap(({ parts }) => parts),
    ]);
    for (const record of this.#unsettled) {
      if (record.outcome.kind !== 'unknown' || open.has(record)) continue;
      record.endedAt = at;
      this.counters.unknownWrites++;
    }
    this.#unsettled = this.#unsettled.filter((record) => open.has(record));
  }

  open(options: {
    tag: string;
    title: string;
    change: Change;
    startedAt: number;
    after?: WriteRecord | null;
  }): WriteRecord {
    const { tag, title, change, startedAt, after = null } = options;
    const record: WriteRecord = {
      tag,
      title: `${tag} (${title})`,
      change,
      startedAt,
      endedAt: Number.POSITIVE_INFINITY,
      outcome: { kind: 'unknown' },
      after,
    };
    this.history.writes.push(record);
    this.#unsettled.push(record);
    this.counters.writes++;
    return record;
  }

  /** Sends a write, with a key if it is to be repeated in case the reply is lost. */
  async write(options: {
    tag: string;
    title: string;
    change: Change;
    call: Call;
    hasKey: boolean;
    isDryRun?: boolean;
  }): Promise<AttemptReply | null> {
    const { tag, title, change, hasKey, isDryRun = false } = options;
    const call = hasKey ? withKey(options.call, `key-${tag}`) : options.call;
    const record = this.open({ tag, title, change, startedAt: performance.now() });
    const keyed: KeyedWrite | null = hasKey
      ? { call, record, reply: null, answeredAt: Number.POSITIVE_INFINITY, life: this.life }
      : null;
    if (keyed !== null) this.unanswered.add(keyed);
    if (isDryRun) record.outcome = { kind: 'none' };
    const attempt = await this.send(call);
    if (keyed !== null) this.#answer(keyed, attempt);
    else this.#note(record, attempt, isDryRun);
    return attempt.reply;
  }

  /** Repeats a keyed write; returns false if there is still no reply. */
  async resend(keyed: KeyedWrite): Promise<boolean> {
    this.counters.replays++;
    const attempt = await this.send(keyed.call);
    return this.#answer(keyed, attempt);
  }

  #answer(keyed: KeyedWrite, attempt: Attempt): boolean {
    const { reply } = attempt;
    const { record } = keyed;
    if (reply === null || BUSY.has(reply.status) || isInFlight(reply)) return false;
    if (keyed.reply !== null) {
      const isSame = keyed.reply.status === reply.status && keyed.reply.text === reply.text;
      const isReplay = reply.headers['idempotent-replayed'] === 'true';
      // Of two concurrent requests, the replay may arrive before the reply that it repeats.
      const mustBeReplay = attempt.startedAt > keyed.answeredAt;
      if (!isSame || (mustBeReplay && !isReplay)) {
        const told = `${reply.status} ${reply.text}${isReplay ? '' : ', not marked as a replay'}`;
        const first = `${keyed.reply.status} ${keyed.reply.text}`;
        this.fault('different replay', `${record.title}: first ${first}, then ${told}`);
      }
      return true;
    }
    const isOfThisLife = keyed.life === this.life;
    keyed.reply = reply;
    keyed.answeredAt = attempt.endedAt;
    this.unanswered.delete(keyed);
    this.answered.push(keyed);
    if (this.answered.length > KEYED_MAX) this.answered.shift();
    this.#note(record, attempt, false, isOfThisLife);
    return true;
  }

  /**
   * @param mayExplain false for a write that was first sent to an earlier life of the service, since a refusal may then
   * come from either life.
   */
  #note(record: WriteRecord, attempt: Attempt, isDryRun: boolean, mayExplain = true): void {
    const { reply, endedAt, mayHaveArrived } = attempt;
    if (reply === null) {
      if (!mayHaveArrived) record.outcome = { kind: 'none' };
      return;
    }
    if (BUSY.has(reply.status)) {
      this.counters.busy++;
      if (!mayHaveEffect(reply)) record.outcome = { kind: 'none' };
      return;
    }
    const json = parse(reply.text);
    const { title, change, startedAt } = record;
    const isLagging = isDryRun && attempt.mayLag === true;
    const read = {
      title,
      startedAt,
      endedAt,
      // A default dry run in a cluster reports what the leading node has applied, which may be less than others have
      // shown; no other reply reveals what that is.
      node: isLagging ? title : attempt.node,
      mayLag: isLagging,
      seen: [],
    };
    if (reply.status === 200) {
      const { sequence, ...members } = json as Counts & { sequence: number };
      const counts = onlyCounts(members);
      const isUnchanged = counts.deleted_count === 0 || counts.updated_count === 0;
      const hasNothingToDo = isUnchanged && (change.kind !== 'write' || isDryRun);
      if (!hasNothingToDo && !isDryRun) {
        record.outcome = { kind: 'acknowledged', sequence, counts };
        record.endedAt = endedAt;
        record.node = attempt.node;
        this.sequence = Math.max(this.sequence, sequence);
        return;
      }
      record.outcome = { kind: 'none' };
      const explain = explainCounts(change, counts, isDryRun);
      if (mayExplain) this.history.reads.push({ ...read, sequence, explain });
      return;
    }
    if (REFUSALS.has(json.code as string)) {
      record.outcome = { kind: 'none' };
      this.counters.refusals++;
      const explain = explainRefusal(change, json.code as string, issuesOf(json, change));
      if (mayExplain) this.history.reads.push({ ...read, sequence: null, explain });
      return;
    }
    this.unexpected(title, reply);
  }
}

export function withKey(call: Call, key: string): Call {
  return { ...call, headers: { ...call.headers, 'idempotency-key': key } };
}

export function isInFlight({ status, text }: AttemptReply): boolean {
  return status === 409 && parse(text).code === 'idempotency_in_flight';
}

export function isBusy({ status }: AttemptReply): boolean {
  return BUSY.has(status);
}

/**
 * Whether a write with this reply may have taken effect: a node that does not know says so, and a request that timed
 * out may still be carried out.
 */
export function mayHaveEffect({ status }: AttemptReply): boolean {
  return status === 504;
}

export function parse(text: string): Record<string, unknown> {
  return JSON.parse(text) as Record<string, unknown>;
}

/** The members of a reply that the model knows. */
function onlyCounts(members: Readonly<Record<string, unknown>>): Counts {
  const names = ['upserted_count', 'inserted_count', 'updated_count', 'deleted_count', 'has_more'];
  const { created } = members;
  return Object.fromEntries([
    ...Object.entries(members).filter(([name]) => names.includes(name)),
    ...(created === undefined ? [] : [['inserted_count', created === true ? 1 : 0]]),
  ]) as Counts;
}

interface Issue {
  readonly pointer: string;
  readonly actual?: number;
}

/** The issues of a refusal: conflicting ids by their locations, others by the sequence that was found. */
function issuesOf(json: Record<string, unknown>, change: Change): (string | number)[] {
  const issues = (json.errors ?? []) as readonly Issue[];
  if (change.kind === 'write' && json.code !== 'precondition_failed')
    return issues.map(({ pointer }) => pointer);
  if (json.code !== 'precondition_failed') return [];
  if (issues.length > 0) return issues.map(({ actual }) => actual!);
  // For If-Match, the detail names the version, which ends with the sequence.
  return [Number(/(?:ETag is "|has version )[^"\s,]*-(\d+)/.exec(String(json.detail))?.[1])];
}
