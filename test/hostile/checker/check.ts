// Checks a history: one order of all writes, by their sequences, must exist in which every reply is right, every read
// is explained by the state at its sequence, and nothing that had ended is undone or unseen later.

import type { Dump, Fault, History, ReadRecord, WriteRecord } from './history.js';
import { applyEffect, type Counts, effectOf, type State } from './model.js';
import {
  type BoundedRead,
  differencesOfStream,
  findPins,
  forceOrder,
  type OpenWrite,
  type Order,
  OrderSearch,
  type Span,
} from './order.js';

/** Number of orders to try for one span, if reads without a sequence can tell them apart. */
const ORDERS_MAX = 64;

export function checkHistory(history: History): Fault[] {
  const { pins, faults } = findPins(history);
  const bounds = new Bounds(history);
  faults.unshift(...history.faults, ...findLost(history));
  const countsOf = new Map<WriteRecord, Counts>();
  let from: State = new Map();
  let fromDump: Dump | null = null;
  for (const to of history.dumps) {
    const span = spanOf(history, { from, fromDump, to, pins, bounds, countsOf });
    const { order, faults: found } = checkSpan(history, span, fromDump?.at ?? 0);
    faults.push(...found);
    const states = statesOf(span, order, countsOf);
    from = states.at(-1)!;
    fromDump = to;
  }
  faults.push(...findWrongStreams(history, countsOf));
  return faults;
}

/** The sequences that were known at a time. */
class Bounds {
  /** The end of each operation that named a sequence, with the highest sequence so far. */
  readonly #ended: Ended;
  /** What each node of a cluster has named. */
  readonly #endedOn = new Map<string, Ended>();
  /** The start of each acknowledged write, with the lowest sequence from there on. */
  readonly #started: readonly (readonly [at: number, sequence: number])[];

  constructor({ writes, reads, dumps }: History) {
    const acknowledged = writes.flatMap(({ outcome, startedAt, endedAt, node }) =>
      outcome.kind === 'acknowledged'
        ? [{ startedAt, at: endedAt, sequence: outcome.sequence, node }]
        : [],
    );
    // A dump covers all nodes.
    const ended: { at: number; sequence: number; node?: string | undefined }[] = [
      ...acknowledged,
      ...reads.flatMap(({ endedAt, sequence, node }) =>
        sequence === null ? [] : [{ at: endedAt, sequence, node }],
      ),
      ...dumps,
    ].sort((a, b) => a.at - b.at);
    this.#ended = highestSoFar(ended);
    for (const name of new Set(ended.map(({ node }) => node))) {
      if (name === undefined) continue;
      const told = ended.filter(({ node }) => node === undefined || node === name);
      this.#endedOn.set(name, highestSoFar(told));
    }
    const started = [
      ...acknowledged.map(({ startedAt, sequence }) => [startedAt, sequence - 1] as const),
      ...dumps.map(({ at, sequence }) => [at, sequence] as const),
    ].sort(([a], [b]) => b - a);
    let lowest = Number.POSITIVE_INFINITY;
    this.#started = started
      .map(([at, sequence]) => {
        lowest = Math.min(lowest, sequence);
        return [at, lowest] as const;
      })
      .reverse();
  }

  /** What begins at this time sees at least this sequence. */
  floor(at: number): number {
    return lastBelow(this.#ended, at);
  }

  /** The same for a read. */
  floorOfRead({ startedAt, node, mayLag, minSequence = 0 }: ReadRecord): number {
    const ended = mayLag === true ? (this.#endedOn.get(node!) ?? []) : this.#ended;
    return Math.max(minSequence, lastBelow(ended, startedAt));
  }

  /** What has ended at this time has seen at most this sequence. */
  ceiling(at: number): number {
    const next = countBelow(this.#started, at, true);
    return this.#started[next]?.[1] ?? Number.POSITIVE_INFINITY;
  }
}

/** Both members ascend. */
type Ended = readonly (readonly [at: number, sequence: number])[];

function highestSoFar(ended: readonly { at: number; sequence: number }[]): Ended {
  let highest = 0;
  return ended.map(({ at, sequence }) => {
    highest = Math.max(highest, sequence);
    return [at, highest];
  });
}

function lastBelow(ended: Ended, at: number): number {
  const count = countBelow(ended, at);
  return count === 0 ? 0 : ended[count - 1]![1];
}

/** Number of the ascending times below `at` or, with `isInclusive`, not above it. */
function countBelow(
  times: readonly (readonly [at: number, sequence: number])[],
  at: number,
  isInclusive = false,
): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const time = times[middle]![0];
    if (time < at || (isInclusive && time === at)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Finds acknowledged writes that are missing in a later dump. */
function findLost({ writes, reads, dumps }: History): Fault[] {
  return dumps.flatMap(({ title, at, sequence: last }) => [
    ...writes.flatMap(({ outcome, endedAt, title: write }): Fault[] => {
      if (outcome.kind !== 'acknowledged' || endedAt >= at || outcome.sequence <= last) return [];
      const detail = `${write}: acknowledged at sequence ${outcome.sequence}, but ${title} is at ${last}`;
      return [{ kind: 'lost write', detail }];
    }),
    ...reads.flatMap(({ sequence, endedAt, title: read }): Fault[] => {
      if (sequence === null || endedAt >= at || sequence <= last) return [];
      const detail = `${read}: saw sequence ${sequence}, but ${title} is at ${last}`;
      return [{ kind: 'lost write', detail }];
    }),
  ]);
}

function spanOf(
  { writes, reads, streams }: History,
  options: {
    readonly from: State;
    readonly fromDump: Dump | null;
    readonly to: Dump;
    readonly pins: ReadonlyMap<string, number>;
    readonly bounds: Bounds;
    readonly countsOf: ReadonlyMap<WriteRecord, Counts>;
  },
): Span {
  const { from, fromDump, to, pins, bounds, countsOf } = options;
  const fromSequence = fromDump?.sequence ?? 0;
  const known = new Map<number, WriteRecord>();
  const open: OpenWrite[] = [];
  for (const write of writes) {
    const { outcome, startedAt, endedAt, tag } = write;
    if (outcome.kind === 'acknowledged') {
      if (outcome.sequence > fromSequence && outcome.sequence <= to.sequence)
        known.set(outcome.sequence, write);
    } else if (outcome.kind !== 'none') {
      const low = Math.max(fromSequence, bounds.floor(startedAt));
      const high = Math.min(bounds.ceiling(endedAt), pins.get(tag) ?? Number.POSITIVE_INFINITY);
      const isHere = low < to.sequence && high > fromSequence && startedAt < to.at;
      if (isHere) open.push({ write, low, high, pinned: pins.get(tag) });
    }
  }
  const readsAt = new Map<number, BoundedRead[]>();
  for (const read of reads) {
    const { sequence, startedAt, endedAt } = read;
    if (startedAt > to.at || startedAt < (fromDump?.at ?? 0)) continue;
    const low = sequence ?? Math.max(fromSequence, bounds.floorOfRead(read));
    const high = sequence ?? Math.min(to.sequence, bounds.ceiling(endedAt));
    for (let at = low; at <= high; at++) {
      readsAt.set(at, [...(readsAt.get(at) ?? []), { read, high }]);
    }
  }
  const streamsByEnd = new Map(streams.map((stream) => [stream.parts.at(-1)!, stream]));
  return {
    from,
    fromSequence,
    to,
    known,
    open,
    readsAt,
    streams: streamsByEnd,
    countsBefore: countsOf,
  };
}

/** Finds the order of the span that leaves the fewest reads unexplained, and its faults. */
function checkSpan(
  history: History,
  span: Span,
  fromAt: number,
): { readonly order: Order; readonly faults: Fault[] } {
  const doubles = findDoubles(history, span);
  let isExhausted = false;
  // If a read is wrong in every order, the search is repeated without reads to find out which.
  for (const mustExplainReads of [true, false]) {
    const search = new OrderSearch(span, { mustExplainReads });
    let best: { order: Order; faults: Fault[] } | null = null;
    let count = 0;
    for (const order of search.orders()) {
      const faults = findWrongReads(history, span, order, fromAt);
      if (best === null || faults.length < best.faults.length) best = { order, faults };
      if (faults.length === 0 || ++count === ORDERS_MAX) break;
    }
    if (best !== null) {
      // If the search gave up, it was not proven that no order explains all reads.
      const doubts = isExhausted && best.faults.length > 0 ? [undecided(span)] : [];
      return { order: best.order, faults: [...doubles, ...doubts, ...best.faults] };
    }
    isExhausted ||= search.isExhausted;
  }
  const { order, faults } = forceOrder(span);
  const all = [...doubles, ...faults, ...findWrongReads(history, span, order, fromAt)];
  if (isExhausted) all.unshift(undecided(span));
  return { order, faults: all };
}

function undecided({ to, open }: Span): Fault {
  const detail = `${to.title}: the order of ${open.length} writes was not found in time; other faults may come from a wrong one`;
  return { kind: 'undecided', detail };
}

function findDoubles({ writes }: History, { known }: Span): Fault[] {
  return writes.flatMap((write): Fault[] => {
    if (write.outcome.kind !== 'acknowledged') return [];
    const { sequence } = write.outcome;
    const other = known.get(sequence);
    if (other === undefined || other === write) return [];
    const detail = `${write.title} and ${other.title} were both acknowledged at sequence ${sequence}`;
    return [{ kind: 'order', detail }];
  });
}

/** The states from the beginning of the span, one for each sequence. */
function statesOf(span: Span, order: Order, countsOf?: Map<WriteRecord, Counts>): State[] {
  const states: State[] = [span.from];
  for (const [i, write] of order.entries()) {
    const before = states[i]!;
    if (write === null) {
      states.push(before);
      continue;
    }
    const effect = effectOf(before, write.change);
    if (effect.kind !== 'refused') countsOf?.set(write, effect.counts);
    const state = new Map(before);
    applyEffect(state, effect, span.fromSequence + 1 + i);
    states.push(state);
  }
  return states;
}

interface Step {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly write: WriteRecord | null;
  readonly read: ReadRecord | null;
}

/**
 * Finds reads that none of their possible states explains, and what precedes something that had already ended. Each
 * read without a sequence takes the first state that explains it: if any choice is right, this one is.
 */
function findWrongReads(history: History, span: Span, order: Order, fromAt: number): Fault[] {
  const states = statesOf(span, order);
  const sequenceOf = new Map(
    order.flatMap((write, i) => (write === null ? [] : [[write, span.fromSequence + 1 + i]])),
  );
  const steps: Step[] = [
    ...history.reads
      .filter(({ startedAt }) => startedAt >= fromAt && startedAt < span.to.at)
      .map((read) => ({ ...timesOf(read), write: null, read })),
    ...[...sequenceOf.keys()].map((write) => ({ ...timesOf(write), write, read: null })),
  ].sort((a, b) => a.startedAt - b.startedAt);
  const ceilingAt = ceilings(steps, sequenceOf, span.to.sequence);
  const byEnd = [...steps].sort((a, b) => a.endedAt - b.endedAt);
  const seenBy = new Map<Step, number>();
  const faults: Fault[] = [];
  const floors = new Floors(span.fromSequence);
  let ended = 0;
  for (const step of steps) {
    while (ended < byEnd.length && byEnd[ended]!.endedAt < step.startedAt) {
      const other = byEnd[ended++]!;
      floors.raise(seenBy.get(other) ?? 0, (other.read ?? other.write)!);
    }
    const { floor, floorTitle } = floors.of(step.read);
    if (step.write !== null) {
      const sequence = sequenceOf.get(step.write)!;
      // A write without a reply has told nobody its sequence.
      seenBy.set(step, step.write.outcome.kind === 'acknowledged' ? sequence : 0);
      if (sequence <= floor) {
        const detail = `${step.write.title}: took effect at sequence ${sequence}, but ${floorTitle} had seen ${floor} before it was sent`;
        faults.push({ kind: 'order', detail });
      }
      continue;
    }
    const read = step.read!;
    const range = { floor, floorTitle, ceiling: ceilingAt(read.endedAt), first: span.fromSequence };
    const { sequence, fault } = explainRead(read, states, range);
    seenBy.set(step, sequence);
    if (fault !== null) faults.push(fault);
  }
  return faults;
}

interface Floor {
  readonly floor: number;
  /** What had seen the sequence. */
  readonly floorTitle: string;
}

/** The highest sequences seen so far, of all nodes and of each node. */
class Floors {
  readonly #first: Floor;
  readonly #byNode = new Map<string | undefined, Floor>();

  constructor(sequence: number) {
    this.#first = { floor: sequence, floorTitle: 'the dump before' };
  }

  raise(seen: number, { title, node }: Pick<ReadRecord, 'title' | 'node'>): void {
    for (const of of new Set([undefined, node])) {
      if (seen > this.#at(of).floor) this.#byNode.set(of, { floor: seen, floorTitle: title });
    }
  }

  /** What a read, or a write, must have seen. */
  of(read: ReadRecord | null): Floor {
    const found = this.#at(read?.mayLag === true ? read.node : undefined);
    const least = read?.minSequence ?? 0;
    return least > found.floor ? { floor: least, floorTitle: 'its min_sequence' } : found;
  }

  #at(node: string | undefined): Floor {
    return this.#byNode.get(node) ?? this.#first;
  }
}

function timesOf({ startedAt, endedAt }: { startedAt: number; endedAt: number }) {
  return { startedAt, endedAt };
}

/** The last sequence that an operation which ended at a given time may have seen. */
function ceilings(
  steps: readonly Step[],
  sequenceOf: ReadonlyMap<WriteRecord, number>,
  last: number,
): (at: number) => number {
  const starts: (readonly [at: number, lowest: number])[] = [];
  let lowest = last;
  for (const { write, startedAt } of steps.toReversed()) {
    if (write === null) continue;
    lowest = Math.min(lowest, sequenceOf.get(write)! - 1);
    starts.push([startedAt, lowest]);
  }
  starts.reverse();
  return (at) => starts[countBelow(starts, at, true)]?.[1] ?? last;
}

/** The states that a read may have seen. */
interface Range extends Floor {
  readonly ceiling: number;
  /** Sequence of the first state. */
  readonly first: number;
}

function explainRead(
  read: ReadRecord,
  states: readonly State[],
  { floor, floorTitle, ceiling, first }: Range,
): { readonly sequence: number; readonly fault: Fault | null } {
  const { title, explain } = read;
  const why = (sequence: number) => {
    const state = states[sequence - first];
    return state === undefined ? 'it is not in the history' : explain(state);
  };
  if (read.sequence !== null) {
    const { sequence } = read;
    if (sequence < floor) {
      const detail = `${title}: read at sequence ${sequence}, but ${floorTitle} had seen ${floor} before it was sent`;
      return { sequence: 0, fault: { kind: 'stale read', detail } };
    }
    const reason = why(sequence);
    if (reason === null) return { sequence, fault: null };
    const detail = `${title}: not the state at its sequence ${sequence}: ${reason}`;
    return { sequence, fault: { kind: 'unexplained read', detail } };
  }
  for (let sequence = floor; sequence <= ceiling; sequence++) {
    if (why(sequence) === null) return { sequence, fault: null };
  }
  for (let sequence = floor - 1; sequence >= first; sequence--) {
    if (why(sequence) !== null) continue;
    const detail = `${title}: the state at sequence ${sequence}, but ${floorTitle} had seen ${floor} before it was sent`;
    return { sequence: 0, fault: { kind: 'stale read', detail } };
  }
  const reasons = [...new Set([floor, ceiling])].map((at) => `at ${at} ${why(at)}`).join('; ');
  const detail = `${title}: no state from sequence ${floor} to ${ceiling} explains it: ${reasons}`;
  return { sequence: 0, fault: { kind: 'unexplained read', detail } };
}

/** Finds streams whose counts are not the sum of those of their parts. */
function findWrongStreams(
  { streams }: History,
  countsOf: ReadonlyMap<WriteRecord, Counts>,
): Fault[] {
  return streams.flatMap((stream) =>
    differencesOfStream(stream, (part) => countsOf.get(part)).map(
      (detail): Fault => ({ kind: 'wrong reply', detail }),
    ),
  );
}
