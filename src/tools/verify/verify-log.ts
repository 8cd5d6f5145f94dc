// The log of one collection from its checkpoint on: no record missing, each one whole, and its rows
// what rows have to be.

import type { CollectionDefinition } from '../../database/collection/manifest.js';
import { logName } from '../../database/keys.js';
import { decodeLogRecord } from '../../segment/log-record.js';
import type { CollectionToVerify } from './verify-collection.js';
import { place, sentenceOf } from './verify-report.js';
import { checkIds, checkRows } from './verify-rows.js';

export function verifyLog({
  inspection,
  definition,
  manifest,
  findings,
  onRead,
}: CollectionToVerify): void {
  const log = logName(definition.incarnation);
  const { checkpointSequence, partialRowCount } = manifest;
  const trimmedThrough = inspection.logs.get(log)?.trimmedThrough ?? 0;
  const where = `${place(definition)}, log`;
  if (trimmedThrough > checkpointSequence) {
    const found = Number.isFinite(trimmedThrough) ? `cut through ${trimmedThrough}` : 'gone';
    findings.error(where, `it is ${found}, and the files reach to ${checkpointSequence}`);
  }
  let sequence = checkpointSequence;
  for (const entry of inspection.readLog(log, checkpointSequence)) {
    if (entry.sequence !== sequence + 1) {
      findings.error(
        where,
        `after the sequence ${sequence} comes ${entry.sequence}: records are missing`,
      );
    }
    sequence = entry.sequence;
    findings.counts.logRecords++;
    const tell = (what: string) => findings.error(where, `record ${sequence}: ${what}`);
    // The damage of its pages was told of already.
    if (entry.record === undefined) continue;
    onRead(entry.record.byteLength);
    const rowsInFiles = sequence === checkpointSequence + 1 ? partialRowCount : 0;
    const rowCount = verifyRecord(entry.record, definition, tell);
    if (rowCount === undefined) continue;
    findings.counts.rows += Math.max(0, rowCount - rowsInFiles);
    if (rowCount < rowsInFiles) {
      tell(`it writes ${rowCount} rows; the files hold ${rowsInFiles} of them`);
    }
  }
  if (partialRowCount > 0 && sequence === checkpointSequence) {
    findings.error(
      where,
      `the write ${sequence + 1}, of which the files hold ${partialRowCount} rows, is missing`,
    );
  }
}

/** How many rows the record writes; undefined when it cannot be read. */
function verifyRecord(
  bytes: Uint8Array,
  definition: CollectionDefinition,
  tell: (what: string) => void,
): number | undefined {
  try {
    const record = decodeLogRecord(bytes);
    if (record.kind === 'deleteAll') return 0;
    if (record.kind === 'delete') {
      checkIds(record.ids, record.count, tell);
      return 0;
    }
    const { count, ids, values } = record.batch;
    const dimension = values.length / count;
    if (dimension !== definition.dimension) {
      tell(`its vectors have ${dimension} dimensions, expected ${definition.dimension}`);
      return count;
    }
    checkRows(record.batch, definition, tell);
    const seen = new Set<string>();
    for (let row = 0; row < count; row++) {
      const id = Buffer.from(ids.bytes.subarray(ids.offsets[row]!, ids.offsets[row + 1]!));
      seen.add(id.toString('latin1'));
    }
    if (seen.size < count) tell(`it writes ${count} rows with ${seen.size} ids`);
    return count;
  } catch (error) {
    tell(sentenceOf(error));
    return undefined;
  }
}
