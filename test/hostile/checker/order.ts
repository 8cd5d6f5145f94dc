// Finds out which write took effect at which sequence. Acknowledged writes name theirs; writes whose connection broke,
// and parts of streams, are assigned to the remaining sequences so that everything read between two dumps fits.

import type { Dump, Fault, History, ReadRecord, StreamRecord, WriteRecord } from './history.js';
import {
  applyEffect,
  type Counts,
  type Effect,
  effectOf,
  type State,
  type StoredRow,
} from './model.js';

/** The time from one dump to the next. */
export interface Span {
  readonly from: State;
  readonly fromSequence: number;
  readonly to: Dump;
  /** Acknowledged writes by sequence. */
  readonly known: ReadonlyMap<number, WriteRecord>;
  /** Writes that may be anywhere in the span, within their bounds. */
  readonly open: readonly OpenWrite[];
  /** Reads by the sequences that they may have seen: the one that they name, or several. */
  readonly readsAt: ReadonlyMap<number, readonly BoundedRead[]>;
  /** Streams by their last part. */
  readonly streams: ReadonlyMap<WriteRecord, StreamRecord>;
  /** Counts of writes in earlier spans. */
  readonly countsBefore: ReadonlyMap<WriteRecord, Counts>;
}

export interface BoundedRead {
  readonly read: ReadRecord;
  /** The last sequence that the read may have seen. */
  readonly high: number;
}

export interface OpenWrite {
  readonly write: WriteRecord;
  /** It took effect after `low` and not after `high`. */
  readonly low: number;
  readonly high: number;
  /** Where its rows were seen; undefined if they were not. */
  readonly pinned: number | undefined;
}

/** Writes from the first sequence of the span on; null where no write explains the sequence. */
export type Order = readonly (WriteRecord | null)[];

/** Steps of a search: more than any span needs whose order can be found at all. */
const STEPS_MAX = 200_000;

/** Finds orders that explain every acknowledged write, the dump at the end and, if requested, every read. */
export class OrderSearch {
  readonly #span: Span;
  readonly #mustExplainReads: boolean;
  #stepsLeft = STEPS_MAX;

  constructor(span: Span, { mustExplainReads }: { readonly mustExplainReads: boolean }) {
    this.#span = span;
    this.#mustExplainReads = mustExplainReads;
  }

  /** Whether it gave up before trying everything. */
  get isExhausted(): boolean {
    return this.#stepsLeft <= 0;
  }

  *orders(): Generator<Order> {
    const { from, fromSequence } = this.#span;
    const path = { order: [], placed: new Set(), counts: new Map(), explained: new Set() } as Path;
    if (this.#explain(fromSequence, from, path)) {
      yield* this.#from(fromSequence + 1, new Map(from), path);
    }
  }

  *#from(first: number, state: Map<string, StoredRow>, path: Path): Generator<Order> {
    const { to, open } = this.#span;
    for (let sequence = first; sequence <= to.sequence; sequence++) {
      if (this.#stepsLeft-- <= 0) return;
      const candidates = this.#candidates(sequence, state, path.placed);
      if (candidates.length === 0) return;
      for (const write of candidates.slice(0, -1)) {
        const branch = new Map(state);
        const taken = copyPath(path);
        if (this.#take(write, sequence, branch, taken)) {
          yield* this.#from(sequence + 1, branch, taken);
        }
      }
      if (!this.#take(candidates.at(-1)!, sequence, state, path)) return;
    }
    const isWhole = open.every(
      ({ write, high }) =>
        write.outcome.kind !== 'done' || high > to.sequence || path.placed.has(write),
    );
    if (isWhole && differenceTo(to, state) === null) yield path.order;
  }

  #candidates(
    sequence: number,
    state: State,
    placed: ReadonlySet<WriteRecord>,
  ): readonly WriteRecord[] {
    const known = this.#span.known.get(sequence);
    if (known === undefined) return candidatesAt(this.#span, sequence, state, placed);
    return fits(known, effectOf(state, known.change)) ? [known] : [];
  }

  /** Changes state and path. Returns whether the path is still possible. */
  #take(write: WriteRecord, sequence: number, state: Map<string, StoredRow>, path: Path): boolean {
    const effect = effectOf(state, write.change);
    applyEffect(state, effect, sequence);
    path.order.push(write);
    path.placed.add(write);
    if (effect.kind === 'changed') path.counts.set(write, effect.counts);
    const stream = this.#span.streams.get(write);
    const countsOf = (part: WriteRecord) =>
      path.counts.get(part) ?? this.#span.countsBefore.get(part);
    if (stream !== undefined && differencesOfStream(stream, countsOf).length > 0) return false;
    return this.#explain(sequence, state, path);
  }

  /** Whether each read that cannot have seen a later state is explained by this one or an earlier one. */
  #explain(sequence: number, state: State, { explained }: Path): boolean {
    if (!this.#mustExplainReads) return true;
    for (const { read, high } of this.#span.readsAt.get(sequence) ?? []) {
      if (explained.has(read)) continue;
      if (read.explain(state) === null) explained.add(read);
      else if (high === sequence) return false;
    }
    return true;
  }
}

/** The writes up to a sequence, as a list and as a set, and what they explain. */
interface Path {
  readonly order: WriteRecord[];
  readonly placed: Set<WriteRecord>;
  readonly counts: Map<WriteRecord, Counts>;
  readonly explained: Set<ReadRecord>;
}

function copyPath({ order, placed, counts, explained }: Path): Path {
  return {
    order: [...order],
    placed: new Set(placed),
    counts: new Map(counts),
    explained: new Set(explained),
  };
}

/** Compares the counts of a stream with the sum of those of its parts. */
export function differencesOfStream(
  { title, parts, counts }: StreamRecord,
  countsOf: (part: WriteRecord) => Counts | undefined,
): string[] {
  return Object.entries(counts).flatMap(([name, told]) => {
    const sum = parts.reduce((total, part) => total + Number(countsOf(part)?.[name] ?? 0), 0);
    return sum === told ? [] : [`${title}: ${name} is ${told}, but its parts have ${sum} together`];
  });
}

/** Writes that may have taken effect at a sequence without an acknowledged write. */
function candidatesAt(
  { open }: Span,
  sequence: number,
  state: State,
  placed: ReadonlySet<WriteRecord>,
): readonly WriteRecord[] {
  const free = open.filter(
    ({ write, low, high, pinned }) =>
      low < sequence &&
      sequence <= high &&
      (pinned === undefined || pinned === sequence) &&
      !placed.has(write) &&
      // The previous part of the stream is assigned, or was in an earlier span.
      !open.some((other) => other.write === write.after && !placed.has(other.write)) &&
      effectOf(state, write.change).kind === 'changed',
  );
  const pinned = free.filter((one) => one.pinned === sequence);
  return (pinned.length > 0 ? pinned : free).map(({ write }) => write);
}

/** The best possible order if none explains everything, with the reasons why not. */
export function forceOrder(span: Span): { order: Order; faults: Fault[] } {
  const state = new Map(span.from);
  const order: (WriteRecord | null)[] = [];
  const placed = new Set<WriteRecord>();
  const faults: Fault[] = [];
  for (let sequence = span.fromSequence + 1; sequence <= span.to.sequence; sequence++) {
    const acknowledged = span.known.get(sequence);
    const write = acknowledged ?? candidatesAt(span, sequence, state, placed)[0] ?? null;
    order.push(write);
    if (write === null) {
      faults.push({
        kind: 'unexplained write',
        detail: `no write that was sent explains sequence ${sequence}`,
      });
      continue;
    }
    placed.add(write);
    const effect = effectOf(state, write.change);
    if (acknowledged !== undefined && !fits(acknowledged, effect)) {
      faults.push({ kind: 'wrong reply', detail: describeMisfit(acknowledged, effect, sequence) });
    }
    applyEffect(state, forced(write, effect), sequence);
  }
  for (const { write, high } of span.open) {
    if (write.outcome.kind === 'done' && high <= span.to.sequence && !placed.has(write)) {
      const detail = `${write.title}: acknowledged, but it has no sequence up to ${span.to.sequence}`;
      faults.push({ kind: 'lost write', detail });
    }
  }
  const difference = differenceTo(span.to, state);
  if (difference !== null) {
    faults.push({ kind: 'lost write', detail: `${span.to.title}: ${difference}` });
  }
  return { order, faults };
}

/** A write that should have been refused is given the effect that it was acknowledged with. */
function forced({ change }: WriteRecord, effect: Effect): Effect {
  if (effect.kind === 'changed' || change.kind !== 'write') return effect;
  return { kind: 'changed', written: change.rows, deleted: [], counts: {} };
}

function fits({ outcome }: WriteRecord, effect: Effect): boolean {
  if (effect.kind !== 'changed' || outcome.kind !== 'acknowledged') return false;
  return Object.entries(outcome.counts).every(([name, value]) => effect.counts[name] === value);
}

function describeMisfit(write: WriteRecord, effect: Effect, sequence: number): string {
  const told = write.outcome.kind === 'acknowledged' ? JSON.stringify(write.outcome.counts) : '';
  const expected =
    effect.kind === 'refused' ? `a refusal, ${effect.code}` : JSON.stringify(effect.counts);
  return `${write.title}: acknowledged with ${told} at sequence ${sequence}; expected ${expected} in the state before it`;
}

/** Compares a dump with a state; null if they are the same. */
function differenceTo(dump: Dump, state: State): string | null {
  const found = new Map(dump.rows.map((row) => [row.id, row]));
  for (const row of dump.rows) {
    const expected = state.get(row.id);
    if (expected === undefined)
      return `"${row.id}" is there, as ${row.metadata.w} wrote it at ${row.sequence}; it should be deleted`;
    const difference = rowDifference(row, expected);
    if (difference !== null) return difference;
  }
  const missing = [...state.values()].find(({ id }) => !found.has(id));
  if (missing !== undefined)
    return `"${missing.id}" is missing, which ${missing.metadata.w} wrote at sequence ${missing.sequence}`;
  const arrivals = [...state.values()].sort((a, b) => a.sequence - b.sequence || a.place - b.place);
  const at = dump.rows.findIndex(({ id }, i) => arrivals[i]!.id !== id);
  if (at < 0) return null;
  return `row ${at} in order of arrival is "${dump.rows[at]!.id}", expected "${arrivals[at]!.id}"`;
}

function rowDifference(row: Dump['rows'][number], expected: StoredRow): string | null {
  const textOf = ({ values, metadata, sequence }: Dump['rows'][number]) =>
    JSON.stringify({ sequence, values, metadata });
  const [found, wanted] = [textOf(row), textOf(expected)];
  return found === wanted ? null : `"${row.id}" is ${found}, expected ${wanted}`;
}

/** Finds where rows of writes were seen, and faults where that is impossible. */
export function findPins(history: History): {
  readonly pins: ReadonlyMap<string, number>;
  readonly faults: Fault[];
} {
  const pins = new Map<string, number>();
  const faults: Fault[] = [];
  const writes = new Map(history.writes.map((write) => [write.tag, write]));
  const note = (tag: string, sequence: number, title: string) => {
    const pinned = pins.get(tag);
    if (pinned === sequence) return;
    const write = writes.get(tag);
    const told = write?.outcome.kind === 'acknowledged' ? write.outcome.sequence : undefined;
    const add = (kind: Fault['kind'], detail: string) =>
      faults.push({ kind, detail: `${title}: ${detail}` });
    if (pinned !== undefined) {
      add('wrong reply', `${tag} is at sequence ${sequence}, and was at ${pinned} before`);
    } else if (write === undefined) {
      add('unexplained write', `a row names the write ${tag}, which nobody sent`);
    } else if (write.outcome.kind === 'none') {
      add('unexplained write', `${write.title} was refused, but a row has it at ${sequence}`);
    } else if (told !== undefined && told !== sequence) {
      add(
        'wrong reply',
        `${write.title} was acknowledged at ${told}, but a row has it at ${sequence}`,
      );
    }
    if (pinned === undefined) pins.set(tag, sequence);
  };
  for (const { seen, title } of history.reads) {
    for (const { tag, sequence } of seen) note(tag, sequence, title);
  }
  for (const { rows, title } of history.dumps) {
    for (const { metadata, sequence } of rows) note(metadata.w, sequence, title);
  }
  return { pins, faults };
}
