// A join as NDJSON with one line per row, or as an Arrow stream with one row per match.

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
import type { Admit } from './sent-rows.js';

export async function* joinLines(join: Join, admit: Admit): AsyncGenerator<Uint8Array> {
  for await (const chunk of join.chunks()) {
    await admit(newRows(chunk));
    yield linesOf(chunk);
  }
}

export async function* joinArrowStream(
  join: Join,
  { includeMetadata, admit }: { readonly includeMetadata: boolean; readonly admit: Admit },
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
      ['row_count', String(join.rowCount)],
    ]),
  );
  let rowsDone = 0;
  for await (const chunk of join.chunks()) {
    await admit(newRows(chunk));
    rowsDone += chunk.isOpen ? newRows(chunk) - 1 : newRows(chunk);
    // Also without matches, so that a reader sees how far the join is.
    const progress = new Map([['rows_done', String(rowsDone)]]);
    yield* encodeBatch(chunk.matchCount, arrowColumns(chunk), progress);
  }
  yield encodeEnd();
}

/** A row that continues from the previous chunk was charged with that chunk. */
function newRows({ rowCount, isContinued }: JoinChunk): number {
  return isContinued ? rowCount - 1 : rowCount;
}

function linesOf(chunk: JoinChunk): Uint8Array {
  const {
    rowCount,
    offsets,
    matchIds,
    scores,
    distances,
    metadata,
    precedingMatchCount: givenCount,
  } = chunk;
  const textBytes = chunk.ids.bytes.length + matchIds.bytes.length + (metadata?.bytes.length ?? 0);
  const json = new JsonWriter(textBytes + rowCount * 32 + chunk.matchCount * 64);
  for (let row = 0; row < rowCount; row++) {
    const isContinued = row === 0 && chunk.isContinued;
    if (!isContinued) {
      json.ascii('{"id":');
      json.text(chunk.ids, row);
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
    if (row < rowCount - 1 || !chunk.isOpen) json.ascii(']}\n');
  }
  return json.written();
}

function arrowColumns(chunk: JoinChunk): ColumnToWrite[] {
  const { matchIds, scores, distances, metadata } = chunk;
  const columns: ColumnToWrite[] = [
    { text: idsOfMatches(chunk), from: 0 },
    { numbers: ranksOf(chunk) },
    { text: matchIds, from: 0 },
    { numbers: scores },
  ];
  if (distances !== null) columns.push({ numbers: distances });
  if (metadata !== null) columns.push({ text: metadata, from: 0 });
  return columns;
}

/** The rank of each match, from 1 for each row. */
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
