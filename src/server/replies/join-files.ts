// A join as lines of JSON, one a row, and as an Arrow stream, one row a match; made while it is sent.

import type { Utf8Column } from '../../common/types.js';
import type { Join } from '../../database/bulk/join.js';
import type { JoinChunk } from '../../database/bulk/join-chunks.js';
import {
  type ColumnToWrite,
  encodeBatch,
  encodeEnd,
  encodeSchema,
  type FieldToWrite,
} from '../../formats/arrow/ipc-writer.js';
import { JsonWriter } from '../../formats/json/json-writer.js';
import type { Pay } from './sent-rows.js';

export async function* joinLines(join: Join, pay: Pay): AsyncGenerator<Uint8Array> {
  for await (const piece of join.chunks()) {
    await pay(newRows(piece));
    yield linesOf(piece);
  }
}

export async function* joinArrowStream(
  join: Join,
  { includeMetadata, pay }: { readonly includeMetadata: boolean; readonly pay: Pay },
): AsyncGenerator<Uint8Array> {
  const fields: FieldToWrite[] = [
    { name: 'id', type: 'utf8' },
    { name: 'rank', type: 'int32' },
    { name: 'match_id', type: 'utf8' },
    { name: 'score', type: 'float32' },
  ];
  if (join.metric === 'euclidean') fields.push({ name: 'distance', type: 'float32' });
  if (includeMetadata) fields.push({ name: 'metadata', type: 'utf8' });
  yield encodeSchema(
    fields,
    new Map([
      ['sequence', String(join.sequence)],
      ['with_sequence', String(join.withSequence)],
    ]),
  );
  for await (const piece of join.chunks()) {
    await pay(newRows(piece));
    if (piece.matchCount > 0) yield* encodeBatch(piece.matchCount, arrowColumns(piece));
  }
  yield encodeEnd();
}

/** A row that goes on from the piece before was paid for there. */
function newRows({ rowCount, isContinued }: JoinChunk): number {
  return isContinued ? rowCount - 1 : rowCount;
}

function linesOf(piece: JoinChunk): Uint8Array {
  const {
    rowCount,
    offsets,
    matchIds,
    scores,
    distances,
    metadata,
    precedingMatchCount: givenCount,
  } = piece;
  const textBytes = piece.ids.bytes.length + matchIds.bytes.length + (metadata?.bytes.length ?? 0);
  const json = new JsonWriter(textBytes + rowCount * 32 + piece.matchCount * 64);
  for (let row = 0; row < rowCount; row++) {
    const isContinued = row === 0 && piece.isContinued;
    if (!isContinued) {
      json.ascii('{"id":');
      json.text(piece.ids, row);
      json.ascii(',"matches":[');
    }
    let isFirst = !isContinued || givenCount === 0;
    for (let match = offsets[row]!; match < offsets[row + 1]!; match++) {
      json.ascii(isFirst ? '{"id":' : ',{"id":');
      isFirst = false;
      json.text(matchIds, match);
      json.ascii(',"score":');
      json.float(scores[match]!);
      if (distances !== null) {
        json.ascii(',"distance":');
        json.float(distances[match]!);
      }
      if (metadata !== null) {
        json.ascii(',"metadata":');
        json.document(metadata, match);
      }
      json.ascii('}');
    }
    if (row < rowCount - 1 || !piece.isOpen) json.ascii(']}\n');
  }
  return json.written();
}

function arrowColumns(piece: JoinChunk): ColumnToWrite[] {
  const { matchIds, scores, distances, metadata } = piece;
  const columns: ColumnToWrite[] = [
    { text: idsOfMatches(piece), from: 0 },
    { numbers: ranksOf(piece) },
    { text: matchIds, from: 0 },
    { numbers: scores },
  ];
  if (distances !== null) columns.push({ numbers: distances });
  if (metadata !== null) columns.push({ text: metadata, from: 0 });
  return columns;
}

/** From 1 for each row. */
function ranksOf({
  rowCount,
  offsets,
  precedingMatchCount: givenCount,
  matchCount,
}: JoinChunk): Int32Array {
  const ranks = new Int32Array(matchCount);
  for (let row = 0; row < rowCount; row++) {
    const before = row === 0 ? givenCount : 0;
    const start = offsets[row]!;
    for (let match = start; match < offsets[row + 1]!; match++) {
      ranks[match] = before + match - start + 1;
    }
  }
  return ranks;
}

/** The id of the row, for each of its matches. */
function idsOfMatches({ rowCount, ids, offsets, matchCount }: JoinChunk): Utf8Column {
  let byteCount = 0;
  for (let row = 0; row < rowCount; row++) {
    byteCount += (ids.offsets[row + 1]! - ids.offsets[row]!) * (offsets[row + 1]! - offsets[row]!);
  }
  const repeated = { offsets: new Int32Array(matchCount + 1), bytes: new Uint8Array(byteCount) };
  let at = 0;
  for (let row = 0; row < rowCount; row++) {
    const start = ids.offsets[row]!;
    const end = ids.offsets[row + 1]!;
    for (let match = offsets[row]!; match < offsets[row + 1]!; match++) {
      for (let i = start; i < end; i++) repeated.bytes[at++] = ids.bytes[i]!;
      repeated.offsets[match + 1] = at;
    }
  }
  return repeated;
}
