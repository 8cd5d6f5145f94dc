// Writes a join as NDJSON with a line per row, or as a table with a row per match.

import type { Utf8Column } from '../../common/types.js';
import type { Join } from '../../database/bulk/join.js';
import type { JoinChunk } from '../../database/bulk/join-chunks.js';
import { JsonWriter } from '../../formats/json/json-writer.js';
import { estimateBytes, rowWriter } from './row-json.js';
import type { Admit } from './sent-rows.js';
import { type Table, type TableColumn, tableOf } from './table.js';

export interface JoinOptions {
  readonly includeMetadata: boolean;
  readonly admit: Admit;
}

type MatchColumn = TableColumn<JoinChunk>;

/** The columns of a match after its id. */
function matchColumns({ metric }: Join, { includeMetadata }: JoinOptions): MatchColumn[] {
  const columns: MatchColumn[] = [
    { name: 'score', type: 'float32', of: ({ scores }) => ({ leaf: scores }) },
  ];
  if (metric === 'euclidean') {
    const of: MatchColumn['of'] = ({ distances }) => ({ leaf: distances! });
    columns.push({ name: 'distance', type: 'float32', of });
  }
  if (includeMetadata) {
    const of: MatchColumn['of'] = ({ metadata }) => ({ leaf: metadata! });
    columns.push({ name: 'metadata', type: 'json', of });
  }
  return columns;
}

const idColumn = (name: string): MatchColumn => ({
  name,
  type: 'utf8',
  of: ({ matchIds }) => ({ leaf: matchIds }),
});

export async function* joinLines(join: Join, options: JoinOptions): AsyncGenerator<Uint8Array> {
  const columns = [idColumn('id'), ...matchColumns(join, options)];
  for await (const chunk of join.chunks()) {
    await options.admit(newRows(chunk));
    yield linesOf(chunk, columns);
  }
}

export function joinTable(join: Join, options: JoinOptions): Table {
  const columns: MatchColumn[] = [
    { name: 'id', type: 'utf8', of: (chunk) => ({ leaf: idsOfMatches(chunk) }) },
    { name: 'rank', type: 'int32', of: (chunk) => ({ leaf: ranksOf(chunk) }) },
    idColumn('match_id'),
    ...matchColumns(join, options),
  ];
  async function* matches() {
    for await (const chunk of join.chunks()) {
      await options.admit(newRows(chunk));
      yield { ...chunk, count: chunk.matchCount };
    }
  }
  let rowsDone = 0;
  return tableOf(columns, matches(), {
    metadata: new Map([
      ['sequence', String(join.sequence)],
      ['with_sequence', String(join.withSequence)],
      ['row_count', String(join.rowCount)],
    ]),
    // Also sent without matches, so that a reader sees the progress of the join.
    metadataOf(chunk) {
      rowsDone += chunk.isOpen ? newRows(chunk) - 1 : newRows(chunk);
      return new Map([['rows_done', String(rowsDone)]]);
    },
  });
}

/** The rows to charge: one that continues from the previous chunk was charged with that chunk. */
function newRows({ rowCount, isContinued }: JoinChunk): number {
  return isContinued ? rowCount - 1 : rowCount;
}

function linesOf(chunk: JoinChunk, fields: readonly MatchColumn[]): Uint8Array {
  const { rowCount, offsets, matchCount, precedingMatchCount } = chunk;
  const columns = fields.map((field) => field.of(chunk));
  const writeMatch = rowWriter(fields, columns);
  const textBytes = chunk.ids.bytes.length + estimateBytes(columns, matchCount);
  const json = new JsonWriter(textBytes + rowCount * 32 + matchCount * 64);
  for (let row = 0; row < rowCount; row++) {
    const isContinued = row === 0 && chunk.isContinued;
    if (!isContinued) {
      json.ascii('{"id":');
      json.text(chunk.ids, row);
      json.ascii(',"matches":[');
    }
    let isFirst = !isContinued || precedingMatchCount === 0;
    for (let match = offsets[row]!; match < offsets[row + 1]!; match++) {
      json.ascii(isFirst ? '{' : ',{');
      isFirst = false;
      writeMatch(json, match);
      json.ascii('}');
    }
    if (row < rowCount - 1 || !chunk.isOpen) json.ascii(']}\n');
  }
  return json.written();
}

/** The rank of each match within its row, from 1. */
function ranksOf({ rowCount, offsets, precedingMatchCount, matchCount }: JoinChunk): Int32Array {
  const ranks = new Int32Array(matchCount);
  for (let row = 0; row < rowCount; row++) {
    const before = row === 0 ? precedingMatchCount : 0;
    const start = offsets[row]!;
    for (let match = start; match < offsets[row + 1]!; match++) {
      ranks[match] = before + match - start + 1;
    }
  }
  return ranks;
}

/** The id of the row of each match. */
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
