// Files of a temporary folder, and what the readers of the command line find in them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { formatOf, openRows } from '../../../src/cli/readers/formats.js';
import type { ReadOptions, RowBatch } from '../../../src/cli/readers/row-batch.js';
import { openSource } from '../../../src/cli/readers/source.js';

export const READ_OPTIONS: ReadOptions = {
  idField: undefined,
  valuesField: undefined,
  fields: undefined,
  vectorColumns: undefined,
  delimiter: undefined,
  dataset: undefined,
  rowsPerBatch: 2,
};

/** Makes a folder for the tests of the file or suite that calls this. */
export function folderOfTests() {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'sagitta-formats-'));
  });
  after(() => rmSync(folder, { recursive: true }));
  const path = (name = ''): string => join(folder, name);
  return {
    path,
    write(name: string, content: string | Uint8Array): string {
      writeFileSync(path(name), content);
      return name;
    },
    async batchesOf(
      name: string,
      options: Partial<ReadOptions> = {},
      startRow = 0,
    ): Promise<RowBatch[]> {
      const source = await openSource(path(name));
      const reader = await openRows(source, formatOf(source), { ...READ_OPTIONS, ...options });
      const batches: RowBatch[] = [];
      for await (const batch of reader.batches(startRow)) batches.push(batch);
      return batches;
    },
  };
}

export function vectorsOf(batches: readonly RowBatch[]): number[][] {
  return batches.flatMap(({ rowCount, dimension, values }) =>
    Array.from({ length: rowCount }, (_, row) => [
      ...values.subarray(row * dimension, (row + 1) * dimension),
    ]),
  );
}
