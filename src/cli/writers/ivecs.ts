// Answers of a batch of queries as ivecs: a record of k ids a query, best first, -1 where there are
// fewer. The ids have to be whole numbers, as those of `sagitta import --row-ids` are.

import { RecordBatchReader } from 'apache-arrow';
import { CliError } from '../failure.js';

const ID_MAX = 0x7fffffff;
const NONE = -1;

/** `queryCount` is asked for at the end: the last queries may have no match. */
export async function* ivecsOfMatches(
  stream: AsyncIterable<Uint8Array>,
  k: number,
  queryCount: () => number,
): AsyncGenerator<Uint8Array> {
  let record = emptyRecord(k);
  let query = 0;
  for await (const batch of await RecordBatchReader.from(stream)) {
    const queries = batch.getChild('query_index')!;
    const ranks = batch.getChild('rank')!;
    const ids = batch.getChild('id')!;
    for (let row = 0; row < batch.numRows; row++) {
      for (const next = Number(queries.get(row)); query < next; query++) {
        yield bytesOf(record);
        record = emptyRecord(k);
      }
      record[Number(ranks.get(row))] = wholeId(ids.get(row) as string);
    }
  }
  for (; query < queryCount(); query++) {
    yield bytesOf(record);
    record = emptyRecord(k);
  }
}

function emptyRecord(k: number): Int32Array {
  const record = new Int32Array(k + 1).fill(NONE);
  record[0] = k;
  return record;
}

function wholeId(id: string): number {
  if (/^\d{1,10}$/.test(id) && Number(id) <= ID_MAX) return Number(id);
  throw new CliError(
    `ivecs holds whole numbers up to ${ID_MAX}, found the id ${JSON.stringify(id)}; ` +
      'ndjson, csv and arrow hold any id',
  );
}

function bytesOf({ buffer, byteOffset, byteLength }: Int32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
