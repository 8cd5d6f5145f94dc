// Writes files to a temporary folder and reads them with the readers of the command line.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { openInput } from '../../src/cli/files/file-source.js';
import { formatOf, openRows } from '../../src/readers/formats.js';
import type { InputSource } from '../../src/readers/input-source.js';
import type { ReaderOptions } from '../../src/readers/reader-options.js';
import type { RowBatch } from '../../src/readers/row-batch.js';

export const READ_OPTIONS: ReaderOptions = {
  idField: undefined,
  valuesField: undefined,
  fields: undefined,
  vectorColumns: undefined,
  delimiter: undefined,
  dataset: undefined,
  rowsPerBatch: 2,
};

/** Creates a folder for the tests of the file or suite that calls this. */
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
      options: Partial<ReaderOptions> = {},
      startRow = 0,
    ): Promise<RowBatch[]> {
      const source = await openInput(path(name));
      const reader = await openRows(source, formatOf(source), { ...READ_OPTIONS, ...options });
      const batches: RowBatch[] = [];
      for await (const batch of reader.batches(startRow)) batches.push(batch);
      return batches;
    },
  };
}

/** A source of the given chunks that behaves like a pipe. */
export function sourceOf(name: string, chunks: readonly Uint8Array[]): InputSource {
  const whole = Buffer.concat(chunks);
  async function* from(start = 0) {
    let before = 0;
    for (const chunk of chunks) {
      if (before + chunk.length > start) yield chunk.subarray(Math.max(0, start - before));
      before += chunk.length;
    }
  }
  return {
    name,
    byteCount: undefined,
    contentBytes: undefined,
    isCompressed: false,
    head: whole.subarray(0, 512),
    bytesRead: () => 0,
    chunks: from,
    file: undefined,
  };
}

/** The bytes in chunks of the given length, each of which begins at an odd address. */
export function cut(bytes: Uint8Array, chunkBytes: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, at) => {
    const chunk = bytes.subarray(at * chunkBytes, (at + 1) * chunkBytes);
    const padded = new Uint8Array(chunk.length + 1);
    padded.set(chunk, 1);
    return padded.subarray(1);
  });
}

export function vectorsOf(batches: readonly RowBatch[]): number[][] {
  return batches.flatMap(({ rowCount, dimension, values }) =>
    Array.from({ length: rowCount }, (_, row) => [
      ...values.subarray(row * dimension, (row + 1) * dimension),
    ]),
  );
}
