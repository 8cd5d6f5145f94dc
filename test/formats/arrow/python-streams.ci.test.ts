// Reads streams and files that pyarrow, polars and DuckDB write, and lets pyarrow read ours.
// SAGITTA_TEST_PYTHON names an interpreter with these packages.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ArrowFileReader, type RandomAccess } from '../../../src/formats/arrow/file-reader.js';
import {
  encodeEnd,
  encodeRecordBatch,
  encodeSchema,
} from '../../../src/formats/arrow/ipc-writer.js';
import {
  BATCH_BYTES_MAX,
  type Row,
  readBatch,
  rowsOf,
  rowsOfBatch,
  textColumn,
} from './streams.js';

const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
const hasArrow = spawnSync(python, ['-c', 'import numpy, pyarrow']).status === 0;
const skip = hasArrow
  ? false
  : `${python} has no numpy and pyarrow; SAGITTA_TEST_PYTHON names one that has`;
/** The compiled test is in dist/test/arrow; the script is read where it was written. */
const SCRIPT = fileURLToPath(
  new URL('../../../../test/formats/arrow/write-streams.py', import.meta.url),
);

interface Written {
  readonly name: string;
  readonly rows: Row[];
  readonly hasFile: boolean;
}

async function fileRows(path: string): Promise<Row[]> {
  const handle = await open(path);
  try {
    const source: RandomAccess = {
      byteLength: (await handle.stat()).size,
      readInto: async (target, offset) => {
        const { bytesRead } = await handle.read(target, 0, target.length, offset);
        assert.equal(bytesRead, target.length);
      },
    };
    const rows: Row[] = [];
    const file = await ArrowFileReader.open(source, BATCH_BYTES_MAX);
    for await (const batch of file.batches()) rows.push(...rowsOfBatch(readBatch(batch)));
    return rows;
  } finally {
    await handle.close();
  }
}

describe('Arrow data from other tools', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-arrow-'));
  after(() => rmSync(folder, { recursive: true }));

  it('is read with every value as written', async (test) => {
    const run = spawnSync(python, [SCRIPT, folder], { encoding: 'utf8' });
    assert.equal(run.status, 0, run.stderr);
    if (run.stderr !== '') test.diagnostic(run.stderr);
    const written = JSON.parse(run.stdout) as Written[];
    assert.ok(written.length > 15);
    for (const { name, rows, hasFile } of written) {
      const bytes = readFileSync(join(folder, name));
      assert.deepEqual(await rowsOf(bytes, {}, 999), rows, name);
      if (hasFile) assert.deepEqual(await fileRows(join(folder, `${name}.arrow`)), rows, name);
    }
  });

  it('gives an error when a file is cut off or changed', async () => {
    const path = join(folder, 'types-None.arrow');
    const bytes = readFileSync(path);
    const memory = (file: Uint8Array): RandomAccess => ({
      byteLength: file.length,
      readInto: async (target, offset) => target.set(file.subarray(offset, offset + target.length)),
    });
    const read = async (file: Uint8Array) => {
      const reader = await ArrowFileReader.open(memory(file), BATCH_BYTES_MAX);
      for await (const batch of reader.batches()) readBatch(batch);
    };
    await read(bytes);
    await assert.rejects(read(bytes.subarray(0, -1)), { code: 'invalid_arrow' });
    let refusedCount = 0;
    for (let at = bytes.length - 4_000; at < bytes.length; at += 4) {
      const changed = Buffer.from(bytes);
      changed.writeInt32LE(0x40000000, at);
      await read(changed).catch((error: { code?: string }) => {
        assert.match(error.code ?? String(error), /^invalid_/);
        refusedCount++;
      });
    }
    assert.ok(refusedCount > 100);
  });

  it('can be exchanged in both directions: pyarrow reads our streams', () => {
    const fields = [
      { name: 'id', type: 'utf8' },
      { name: 'rank', type: 'int32' },
      { name: 'query_index', type: 'int64' },
      { name: 'values', type: { vectorOf: 3 } },
    ] as const;
    const values = Float32Array.from({ length: 3 * 3_000 }, (_, i) => i / 8);
    const ids = textColumn(Array.from({ length: 3_001 }, (_, i) => `ä${i}`));
    const numbers = BigInt64Array.from({ length: 3_000 }, (_, i) => BigInt(i));
    const path = join(folder, 'ours');
    const columns = [
      { leaf: { ...ids, offsets: ids.offsets.subarray(1) } },
      { leaf: Int32Array.from({ length: 3_000 }, (_, i) => -i) },
      { leaf: numbers },
      { vectors: values },
    ];
    const chunks = encodeRecordBatch(3_000, columns);
    assert.ok(
      chunks.some(({ buffer }) => buffer === values.buffer),
      'values are not copied',
    );
    const schema = encodeSchema(fields, new Map([['sequence', '7']]));
    writeFileSync(path, Buffer.concat([schema, ...chunks, encodeEnd()]));
    const script = `
import json, sys
import pyarrow
table = pyarrow.ipc.open_stream(sys.argv[1]).read_all()
table.validate(full=True)
print(json.dumps([table.num_rows, str(table.schema.field("values").type), table.slice(2999).to_pylist(),
  table.schema.metadata[b"sequence"].decode()]))
`;
    const run = spawnSync(python, ['-c', script, path], { encoding: 'utf8' });
    assert.equal(run.status, 0, run.stderr);
    const last = { id: 'ä3000', rank: -2999, query_index: 2999, values: [...values.subarray(-3)] };
    assert.deepEqual(JSON.parse(run.stdout), [
      3_000,
      'fixed_size_list<item: float not null>[3]',
      [last],
      '7',
    ]);
  });
});
