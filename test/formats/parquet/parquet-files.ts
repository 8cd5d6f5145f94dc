// Parquet files with rows of every type.

import { encodeSchema, type FieldToWrite } from '../../../src/formats/arrow/ipc-writer.js';
import { ParquetWriter } from '../../../src/formats/parquet/parquet-writer.js';
import { columnOf } from '../../database/harness.js';

export type Columns = Record<string, string[]>;

/** Writes groups of pieces of texts, which are both ids and metadata. */
export function fileOf({
  dimension,
  groups,
  isPlain = false,
}: {
  dimension: number | null;
  groups: readonly (readonly (readonly string[])[])[];
  isPlain?: boolean;
}): { bytes: Buffer; columns: Columns } {
  const fields: FieldToWrite[] = [{ name: 'id', type: 'utf8' }];
  const columns: Columns = { id: [] };
  if (dimension !== null) {
    fields.push({ name: 'values', type: { vectorOf: dimension } });
    columns.values = [];
  }
  fields.push({ name: 'metadata', type: 'utf8' });
  columns.metadata = [];
  const writer = new ParquetWriter({
    fields,
    metadata: new Map([['sequence', '7']]),
    createdBy: 'a test',
    ...(isPlain ? {} : { arrowSchema: encodeSchema(fields, new Map([['sequence', '7']])) }),
  });
  const chunks = [writer.begin()];
  let next = 1;
  for (const group of groups) {
    const pieces = group.map((texts) => {
      const values = Float32Array.from({ length: texts.length * (dimension ?? 0) }, () => {
        next = Math.fround(next * -1.37 + 1e-3);
        return Math.abs(next) > 1e30 ? 1e-40 : next;
      });
      // The piece is only a part of the column.
      const padded = columnOf(['before', ...texts, 'after']);
      const column = { ...padded, offsets: padded.offsets.subarray(1) };
      columns.id!.push(...texts);
      columns.metadata!.push(...texts);
      if (dimension !== null) {
        const bytes = Buffer.from(values.buffer);
        for (let at = 0; at < bytes.length; at += dimension * 4) {
          columns.values!.push(bytes.subarray(at, at + dimension * 4).toString('hex'));
        }
      }
      const text = { leaf: column };
      return {
        count: texts.length,
        columns: dimension === null ? [text, text] : [text, { vectors: values }, text],
      };
    });
    chunks.push(...writer.rowGroup(pieces));
  }
  chunks.push(writer.end());
  return { bytes: Buffer.concat(chunks), columns };
}
