// Compares what clients were told with what the logs contain: no acknowledged write is lost or carried out twice, and
// every read shows one state of the collection, no older than its consistency allows.

import type { ReadRecord, Row, WriteRecord } from './operations.js';
import type { TrueWrite, Truth } from './truth.js';

type Fail = (what: string) => void;

export function checkWrites(truth: Truth, records: readonly WriteRecord[], fail: Fail): void {
  const sequencesByMarker = new Map<string, number>();
  for (const { sequence, rows } of truth.writes) {
    for (const { marker } of rows) {
      if (marker === null) continue;
      const before = sequencesByMarker.get(marker);
      if (before !== undefined)
        fail(`${marker} was carried out twice, at ${before} and ${sequence}`);
      sequencesByMarker.set(marker, sequence);
    }
  }
  const known = new Set(records.map(({ write }) => write.marker));
  for (const marker of sequencesByMarker.keys()) {
    if (!known.has(marker)) fail(`nobody asked for ${marker}`);
  }
  const claimed = new Map<number, string>();
  for (const record of records) {
    const { write, outcome } = record;
    const at = sequencesByMarker.get(write.marker);
    if (outcome.kind === 'refused' && at !== undefined)
      fail(`${write.marker} was refused (${outcome.code}), and is at ${at}`);
    if (outcome.kind !== 'acknowledged') continue;
    const { sequence } = outcome;
    const other = claimed.get(sequence);
    if (other !== undefined)
      fail(`${write.marker} and ${other} were both confirmed at ${sequence}`);
    claimed.set(sequence, write.marker);
    const problem = problemOf(record, sequence, truth);
    if (problem !== null) {
      fail(
        `${write.kind} ${write.marker} of ${write.key} was confirmed at ${sequence}: ${problem}`,
      );
    }
  }
  checkOrder(records, fail);
}

/** Null for an acknowledged write that is in the log as it should be. */
function problemOf({ write }: WriteRecord, sequence: number, truth: Truth): string | null {
  const { kind, key, marker, ifSequence } = write;
  const found = truth.writes[sequence - 1];
  if (found === undefined) return `lost; the log ends at ${truth.sequence}`;
  const row = found.rows.find(({ id }) => id === key);
  const isFound = kind === 'delete' ? row?.marker === null : row?.marker === marker;
  if (!isFound) return `lost; there is ${describe(found)}`;
  const before = truth.at(sequence - 1).get(key);
  if (ifSequence !== undefined && (before?.sequence ?? 0) !== ifSequence) {
    return `expected the row at ${ifSequence}, which was at ${before?.sequence ?? 0}`;
  }
  if (kind === 'insert' && before !== undefined) return `the row existed, at ${before.sequence}`;
  if ((kind === 'patch' || kind === 'delete') && before === undefined) return 'no row existed';
  return null;
}

function describe({ kind, rows }: TrueWrite): string {
  return `${kind} ${rows.map(({ id, marker }) => `${id} ${marker ?? ''}`).join()}`;
}

/** A write that begins after another one was acknowledged comes later. */
function checkOrder(records: readonly WriteRecord[], fail: Fail): void {
  const ended = acknowledged(records).sort((a, b) => a.endedAtMs - b.endedAtMs);
  const started = acknowledged(records).sort((a, b) => a.startedAtMs - b.startedAtMs);
  let next = 0;
  let last = 0;
  for (const { startedAtMs, sequence } of started) {
    while (next < ended.length && ended[next]!.endedAtMs < startedAtMs) {
      last = Math.max(last, ended[next]!.sequence);
      next++;
    }
    if (sequence < last) fail(`the write at ${sequence} began after that at ${last} was confirmed`);
  }
}

function acknowledged(records: readonly WriteRecord[]) {
  return records.flatMap(({ startedAtMs, endedAtMs, outcome }) =>
    outcome.kind === 'acknowledged' ? [{ startedAtMs, endedAtMs, sequence: outcome.sequence }] : [],
  );
}

/** What was known to be in the collection at a time. */
interface Known {
  readonly atMs: number;
  readonly sequence: number;
}

export function checkReads(
  truth: Truth,
  {
    reads,
    writes,
  }: { readonly reads: readonly ReadRecord[]; readonly writes: readonly WriteRecord[] },
  fail: Fail,
): void {
  const known: Known[] = acknowledged(writes).map(({ endedAtMs, sequence }) => ({
    atMs: endedAtMs,
    sequence,
  }));
  for (const { endedAtMs, result } of reads) known.push({ atMs: endedAtMs, sequence: result.from });
  known.sort((a, b) => a.atMs - b.atMs);
  const strong = [...reads].sort((a, b) => a.startedAtMs - b.startedAtMs);
  let next = 0;
  let last = 0;
  for (const record of strong) {
    const { read, result, startedAtMs, seenSequence, node, client } = record;
    while (next < known.length && known[next]!.atMs < startedAtMs) {
      last = Math.max(last, known[next]!.sequence);
      next++;
    }
    const who = `client ${client} at ${node}, ${(startedAtMs / 1_000).toFixed(4)} s`;
    const shown = shownSequence(truth, result.rows, read.keys, result);
    if (shown === null) {
      fail(`${who}: a read from ${result.from} to ${result.to} shows no state of the collection`);
      continue;
    }
    if (read.isStrong && shown < last) fail(`${who}: a strong read shows ${shown}, after ${last}`);
    if (shown < seenSequence)
      fail(`${who}: a read shows ${shown}, after its client had seen ${seenSequence}`);
  }
}

/** The last sequence whose state the rows are; null for none. */
function shownSequence(
  truth: Truth,
  rows: readonly Row[],
  keys: readonly string[],
  { from, to }: { readonly from: number; readonly to: number },
): number | null {
  const found = new Map(rows.map((row) => [row.id, row]));
  for (let sequence = Math.min(to, truth.sequence); sequence >= from; sequence--) {
    const state = truth.at(sequence);
    const isSame = keys.every((key) => {
      const row = state.get(key);
      const shown = found.get(key);
      return row?.sequence === shown?.sequence && row?.marker === shown?.marker;
    });
    if (isSame) return sequence;
  }
  return null;
}
