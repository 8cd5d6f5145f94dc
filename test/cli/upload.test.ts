// The uploader against a fake server that records uploads: the grouping of rows, the order of acknowledgements, and the
// location of rows in errors.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SagittaClientError } from '@sagitta/client';
import { RecordBatchReader, type Vector } from 'apache-arrow';
import { type ImportProgress, START } from '../../src/cli/import/journal.js';
import {
  Uploader,
  type UploaderOptions,
  type UploadResult,
} from '../../src/cli/import/uploader.js';
import { CliError } from '../../src/cli/terminal/failure.js';
import type { RowBatch } from '../../src/readers/row-batch.js';

function batchOf(first: number, count: number, dimension = 1): RowBatch {
  return {
    rowCount: count,
    ids: Array.from({ length: count }, (_, row) => (row % 2 === 0 ? `r${first + row}` : undefined)),
    values: new Float32Array(count * dimension).fill(first),
    dimension,
    metadata: undefined,
    location: (row) => `f:${first + row}`,
    fileRow: (row) => first + row,
    endRow: first + count,
  };
}

/** A fake server that records ids and the sizes of streams and record batches. */
class Service {
  readonly streams: number[][] = [];
  readonly ids: string[] = [];
  readonly metadata = new Set<string>();
  fail: ((stream: number) => SagittaClientError | undefined) | undefined;

  async writeStream(body: () => Iterable<Uint8Array>) {
    const failure = this.fail?.(this.streams.length);
    if (failure !== undefined) throw failure;
    const reader = RecordBatchReader.from(Buffer.concat([...body()]));
    const batches: number[] = [];
    for (const batch of reader) {
      batches.push(batch.numRows);
      this.ids.push(...(batch.getChild('id') as Vector));
      for (const text of batch.getChild('metadata') as Vector) this.metadata.add(text as string);
    }
    this.streams.push(batches);
    const count = batches.reduce((sum, rows) => sum + rows, 0);
    return { inserted_count: count, updated_count: 0, sequence: this.streams.length };
  }
}

function uploaderTo(service: Service, options: Partial<UploaderOptions> = {}) {
  const commits: UploadResult[] = [];
  const uploader = new Uploader([service], {
    idOf: (found, row) => found ?? `made-${row}`,
    start: START,
    now: () => 0,
    onCommit: async (result) => {
      commits.push(result);
    },
    ...options,
  });
  return { uploader, commits };
}

it('keeps the record batches as read, and generates ids from row numbers', async () => {
  const service = new Service();
  const { uploader } = uploaderTo(service, { start: { file: 0, row: 100, total: 500 } });
  await uploader.add(batchOf(0, 3), 0, 100);
  await uploader.add(batchOf(3, 2), 0, 103);
  const result = await uploader.finish();
  assert.deepEqual(service.streams, [[3, 2]]);
  assert.deepEqual(service.ids, ['r0', 'made-501', 'r2', 'r3', 'made-504']);
  assert.deepEqual([...service.metadata], ['{}']);
  assert.equal(result.rowCount, 5);
  assert.deepEqual(result.progress, { file: 0, row: 105, total: 505 });
});

it('splits a long import into uploads that are acknowledged in order', async () => {
  const service = new Service();
  const { uploader, commits } = uploaderTo(service);
  const dimension = 100_000;
  // 4 MB each.
  for (let at = 0; at < 20; at++) await uploader.add(batchOf(at * 10, 10, dimension), 0, at * 10);
  await uploader.finish();
  assert.deepEqual(
    service.streams.map((batches) => batches.length),
    [6, 6, 6, 2],
  );
  assert.deepEqual(
    commits.map(({ progress }) => progress.row),
    [60, 120, 180, 200],
  );
});

it('progress counts rows per file', async () => {
  const { uploader } = uploaderTo(new Service());
  await uploader.add(batchOf(0, 10), 0, 0);
  await uploader.add(batchOf(0, 4), 1, 0);
  const { progress } = await uploader.finish();
  assert.deepEqual(progress, { file: 1, row: 4, total: 14 } satisfies ImportProgress);
});

it('a server error ends the upload with the location of the row and counts the durable rows', async () => {
  const service = new Service();
  const detail = 'a hole (row 1 of record batch 1)';
  service.fail = () =>
    new SagittaClientError('invalid_vector', detail, {
      items: [{ pointer: '/rows/4/values', code: 'invalid_vector', detail }],
      committedCount: 3,
      sequence: 7,
    });
  const { uploader, commits } = uploaderTo(service);
  await uploader.add(batchOf(10, 3), 0, 10);
  await uploader.add(batchOf(13, 3), 0, 13);
  await assert.rejects(uploader.finish(), (error: unknown) => {
    assert.ok(error instanceof CliError);
    assert.equal(error.message, 'f:14: values: a hole');
    return true;
  });
  assert.equal(uploader.result.rowCount, 3);
  assert.equal(uploader.result.sequence, 7);
  assert.deepEqual(commits.at(-1)?.progress, { file: 0, row: 13, total: 3 });
});

it('an error without a row is rethrown unchanged', async () => {
  const service = new Service();
  const failure = new SagittaClientError('storage_full', 'the disk is full');
  service.fail = () => failure;
  const { uploader } = uploaderTo(service);
  await uploader.add(batchOf(0, 1), 0, 0);
  await assert.rejects(uploader.finish(), (error) => error === failure);
  assert.equal(uploader.result.rowCount, 0);
});
