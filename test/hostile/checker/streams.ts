// Streams of writes, which are sent completely, ended in the middle of a batch, or cut by the client, and repeated
// until they are complete. Each batch of a stream is a separate write.

import { arrowStream, linesOf } from '../../server/ingest/streams.js';
import type { Call } from './attempt.js';
import type { WriteRecord } from './history.js';
import type { Row } from './model.js';
import { isBusy, isInFlight, mayHaveEffect, parse, type Recorder, withKey } from './recorder.js';

/** A stream that must be repeated. */
export interface OpenStream {
  readonly title: string;
  readonly call: Call;
  readonly parts: readonly WriteRecord[];
  /** Rows that replies have reported as durable. */
  committedRows: number;
  /** Whether later attempts may have written more. */
  isUncertain: boolean;
}

export type StreamEnd = 'whole' | 'truncated' | 'cut';

/** The rows of the parts; ids are distinct within a part. */
export function openStream(
  recorder: Recorder,
  options: {
    readonly tags: readonly string[];
    readonly batches: readonly (readonly Row[])[];
    readonly isArrow: boolean;
  },
): OpenStream {
  const { tags, batches, isArrow } = options;
  const startedAt = performance.now();
  const parts: WriteRecord[] = [];
  for (const [i, rows] of batches.entries()) {
    const change = { kind: 'write', mode: 'upsert', rows } as const;
    const title = `part ${i + 1} of ${batches.length} of a stream`;
    parts.push(
      recorder.open({ tag: tags[i]!, title, change, startedAt, after: parts.at(-1) ?? null }),
    );
  }
  const asText = batches.map((rows) =>
    rows.map((row) => ({ ...row, metadata: JSON.stringify(row.metadata) })),
  );
  const call: Call = {
    method: 'POST',
    path: `${recorder.path}/vectors`,
    body: isArrow ? arrowStream(asText) : linesOf(asText.flat()),
    headers: {
      'content-type': isArrow ? 'application/vnd.apache.arrow.stream' : 'application/x-ndjson',
    },
  };
  recorder.counters.streams++;
  const stream: OpenStream = {
    title: `stream ${tags[0]}…${tags.at(-1)}`,
    call: withKey(call, `key-${tags[0]}`),
    parts,
    committedRows: 0,
    isUncertain: false,
  };
  recorder.openStreams.add(stream);
  return stream;
}

/**
 * An offset at about this share of a stream, but neither between two lines of NDJSON nor between two Arrow messages,
 * which are aligned to 8 bytes: cutting there would leave a valid stream, and half of the rows would be accepted.
 */
export function placeWithin(stream: Uint8Array, share: number): number {
  const LINE_END = 0x0a;
  let at = Math.floor(stream.length * share) | 1;
  while (stream[at - 1] === LINE_END || stream[at] === LINE_END) at += 2;
  // Without its last three bytes, the last row is incomplete.
  return Math.min(at, stream.length - 3);
}

/** Sends the stream once. Returns whether it is complete. */
export async function sendStream(
  recorder: Recorder,
  stream: OpenStream,
  end: StreamEnd,
  share: number,
): Promise<boolean> {
  const body = Buffer.from(stream.call.body!);
  const byteCount = placeWithin(body, share);
  const call =
    end === 'whole'
      ? stream.call
      : end === 'truncated'
        ? { ...stream.call, body: body.subarray(0, byteCount) }
        : { ...stream.call, cutAfterBytes: byteCount };
  const { reply, endedAt } = await recorder.send(call);
  if (reply === null) {
    stream.isUncertain = true;
    return false;
  }
  if (isInFlight(reply)) return false;
  const json = parse(reply.text);
  if (reply.status === 200) {
    if (end !== 'whole') recorder.fault('wrong reply', `${stream.title}: half of it was accepted`);
    const isReplay = reply.headers['idempotent-replayed'] === 'true';
    complete(recorder, stream, { json, isReplay, endedAt });
    return true;
  }
  if (typeof json.committed_count === 'number') {
    noteCommitted(recorder, stream, json, endedAt);
  } else if (!isBusy(reply) || mayHaveEffect(reply)) {
    stream.isUncertain = true;
  }
  if (end === 'whole' && !isBusy(reply)) recorder.unexpected(stream.title, reply);
  return false;
}

/** After an error, exactly the rows before `committed_count` are durable. */
function noteCommitted(
  recorder: Recorder,
  stream: OpenStream,
  json: Record<string, unknown>,
  endedAt: number,
): void {
  const rowCount = json.committed_count as number;
  const count = partsOf(stream, rowCount);
  if (count === null || rowCount < stream.committedRows) {
    const detail = `${stream.title}: committed_count is ${rowCount}, after ${stream.committedRows}; its batches have ${stream.parts.map(rowsIn).join(', ')} rows`;
    recorder.fault('wrong reply', detail);
    return;
  }
  const last = count === 0 ? undefined : stream.parts[count - 1];
  markDone(stream.parts.slice(0, count), endedAt);
  if (last !== undefined && typeof json.sequence === 'number') {
    last.outcome = { kind: 'acknowledged', sequence: json.sequence, counts: {} };
  }
  stream.committedRows = rowCount;
  stream.isUncertain = false;
}

function complete(
  recorder: Recorder,
  stream: OpenStream,
  {
    json,
    isReplay,
    endedAt,
  }: {
    readonly json: Record<string, unknown>;
    readonly isReplay: boolean;
    readonly endedAt: number;
  },
): void {
  const { parts, title } = stream;
  const resumedRows = json.resumed_count as number;
  const isPrefix = partsOf(stream, resumedRows) !== null;
  // A replay may repeat the reply to an attempt whose reply was lost, which had resumed from fewer rows than were
  // durable later.
  const isRight =
    isReplay ||
    (stream.isUncertain
      ? resumedRows >= stream.committedRows
      : resumedRows === stream.committedRows);
  if (!isPrefix || !isRight) {
    const detail = `${title}: resumed_count is ${resumedRows}, but ${stream.committedRows} rows had been called durable`;
    recorder.fault('wrong reply', detail);
  }
  if (json.batch_count !== parts.length) {
    const detail = `${title}: batch_count is ${json.batch_count}, expected ${parts.length}`;
    recorder.fault('wrong reply', detail);
  }
  recorder.openStreams.delete(stream);
  if (resumedRows > 0) recorder.counters.streamsResumed++;
  markDone(parts, endedAt);
  const last = parts.at(-1)!;
  last.outcome = { kind: 'acknowledged', sequence: json.sequence as number, counts: {} };
  recorder.history.streams.push({
    title,
    parts,
    counts: {
      upserted_count: json.upserted_count as number,
      inserted_count: json.inserted_count as number,
      updated_count: json.updated_count as number,
    },
  });
}

function markDone(parts: readonly WriteRecord[], endedAt: number): void {
  for (const part of parts) {
    if (part.outcome.kind !== 'unknown') continue;
    part.outcome = { kind: 'done' };
    part.endedAt = endedAt;
  }
}

/** Number of parts with this number of rows in total; null if that is not a whole number. */
function partsOf({ parts }: OpenStream, rowCount: number): number | null {
  let sum = 0;
  let count = 0;
  while (sum < rowCount && count < parts.length) sum += rowsIn(parts[count++]!);
  return sum === rowCount ? count : null;
}

function rowsIn({ change }: WriteRecord): number {
  return change.kind === 'write' ? change.rows.length : 0;
}
