// The uploader with several targets, whose replies arrive in the order that a test chooses: what is sent where, what
// waits, which rows count as written, and where an import would resume.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { SagittaClientError } from '@sagitta/client';
import { RecordBatchReader, type Vector } from 'apache-arrow';
import { type ImportProgress, START } from '../../src/cli/import/journal.js';
import {
  Uploader,
  type UploaderOptions,
  type UploadResult,
  type UploadTarget,
} from '../../src/cli/import/uploader.js';
import { CliError } from '../../src/cli/terminal/failure.js';
import type { RowBatch } from '../../src/readers/row-batch.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { createRandom, testSeed } from '../support/random.js';

type Reply = Awaited<ReturnType<UploadTarget['writeStream']>>;

interface SentUpload {
  readonly target: number;
  readonly ids: readonly string[];
  readonly isBulk: boolean;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
  readonly rows: readonly Row[];
}

interface Row {
  readonly id: string;
  readonly value: number;
}

/** Targets that keep each upload until the test replies to it; its rows are applied to one state. */
class Cluster {
  readonly targets: readonly UploadTarget[];
  /** All uploads so far. */
  readonly sent: SentUpload[] = [];
  /** The uploads without a reply. */
  readonly open = new Set<SentUpload>();
  readonly leftOut: number[] = [];
  readonly state: Map<string, number>;
  #sequence = 0;

  constructor(targetCount: number, state = new Map<string, number>()) {
    this.state = state;
    this.targets = Array.from({ length: targetCount }, (_, target) => ({
      writeStream: (body: () => Iterable<Uint8Array>, { bulk = false }: { bulk?: boolean }) =>
        new Promise<Reply>((resolve, reject) => {
          const rows = rowsOf(body());
          const ids = rows.map(({ id }) => id);
          const upload = { target, ids, isBulk: bulk, resolve, reject, rows };
          this.sent.push(upload);
          this.open.add(upload);
        }),
      ...(target > 0 && { onLeftOut: () => this.leftOut.push(target) }),
    }));
  }

  /** The rows become durable, and the upload gets its reply. */
  async accept(upload: SentUpload): Promise<void> {
    this.apply(upload);
    this.open.delete(upload);
    const counts = { inserted_count: upload.rows.length, updated_count: 0 };
    upload.resolve({ ...counts, sequence: this.#sequence });
    await turn();
  }

  /** The first `rowCount` rows become durable, and the upload gets an error that counts them. */
  async refuse(upload: SentUpload, rowCount = 0, row = rowCount): Promise<void> {
    this.apply(upload, rowCount);
    this.open.delete(upload);
    const items = [
      { pointer: `/rows/${row}/values`, code: 'invalid_vector', detail: 'a hole' } as const,
    ];
    const details = { items, committedCount: rowCount, sequence: this.#sequence };
    upload.reject(new SagittaClientError('invalid_vector', 'a hole', details));
    await turn();
  }

  async lose(upload: SentUpload): Promise<void> {
    this.open.delete(upload);
    upload.reject(new SagittaClientError('network_error', 'connection refused'));
    await turn();
  }

  /** Accepts all uploads until the promise settles. */
  async acceptUntil<Result>(promise: Promise<Result>): Promise<Result> {
    while (await isPending(promise)) {
      for (const upload of this.open) await this.accept(upload);
    }
    return await promise;
  }

  apply({ rows }: SentUpload, rowCount = rows.length): void {
    this.#sequence++;
    for (const { id, value } of rows.slice(0, rowCount)) this.state.set(id, value);
  }
}

function rowsOf(body: Iterable<Uint8Array>): Row[] {
  return [...RecordBatchReader.from(Buffer.concat([...body]))].flatMap((batch) => {
    const ids = [...(batch.getChild('id') as Vector)] as string[];
    const values = batch.getChild('values') as Vector;
    return ids.map((id, row) => ({ id, value: values.get(row).get(0) as number }));
  });
}

/** Rows with these ids; their values are their numbers in the file, from `firstRow`. */
function batchOf(ids: readonly string[], firstRow = 0, dimension = 1): RowBatch {
  const values = new Float32Array(ids.length * dimension);
  for (let row = 0; row < ids.length; row++) values[row * dimension] = firstRow + row;
  return {
    rowCount: ids.length,
    ids: [...ids],
    values,
    dimension,
    metadata: undefined,
    location: (row) => `f:${firstRow + row}`,
    fileRow: (row) => firstRow + row,
    endRow: firstRow + ids.length,
  };
}

/** An uploader that sends each batch as an upload of its own, by a clock that jumps ahead. */
function uploaderTo(cluster: Cluster, options: Partial<UploaderOptions> = {}) {
  const saved: ImportProgress[] = [];
  let nowMs = 0;
  const uploader = new Uploader(cluster.targets, {
    idOf: (found) => found!,
    start: START,
    now: () => (nowMs += 60_000),
    onCommit: async ({ progress }) => {
      saved.push(progress);
    },
    ...options,
  });
  let firstRow = 0;
  const add = async (...ids: string[]): Promise<void> => {
    const at = firstRow;
    firstRow += ids.length;
    await uploader.add(batchOf(ids, at), 0, at);
  };
  return { uploader, saved, add };
}

/** Whether the promise is still pending after everything that can happen has happened. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let isOver = false;
  promise.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  await turn();
  return !isOver;
}

it('each target gets one upload at a time, and the next one goes to whichever is free', async () => {
  const cluster = new Cluster(3);
  const { uploader, add } = uploaderTo(cluster);
  for (const id of ['a', 'b', 'c']) await add(id);
  const fourth = add('d');
  assert.ok(await isPending(fourth));
  await cluster.accept(cluster.sent[1]!);
  await fourth;
  assert.deepEqual(
    cluster.sent.map(({ target }) => target),
    [0, 1, 2, 1],
  );
  const { insertedCount } = await cluster.acceptUntil(uploader.finish());
  assert.equal(insertedCount, 4);
});

it('only full uploads to several targets are sent in bulk', async () => {
  const send = async (cluster: Cluster) => {
    const { uploader } = uploaderTo(cluster, { now: () => 0 });
    // 8 MB each.
    for (let at = 0; at < 16; at++) {
      const batch = batchOf([`${at}`, `${at}-`], at * 2, 1_000_000);
      await cluster.acceptUntil(uploader.add(batch, 0, at * 2));
    }
    await cluster.acceptUntil(uploader.finish());
    return cluster.sent.map(({ isBulk, ids }) => [isBulk, ids.length]);
  };
  const small = [false, 6];
  assert.deepEqual(await send(new Cluster(1)), [small, small, small, small, small, [false, 2]]);
  assert.deepEqual(await send(new Cluster(2)), [
    [true, 16],
    [true, 16],
  ]);
});

it('progress is saved up to the first row that is not durable, while all durable rows count', async () => {
  const cluster = new Cluster(3);
  const { uploader, saved, add } = uploaderTo(cluster, {
    start: { file: 0, row: 0, total: 100 },
  });
  await add('a', 'b');
  await add('c');
  await add('d', 'e', 'f');
  const [first, second, third] = cluster.sent;
  await cluster.accept(third!);
  assert.equal(uploader.result.rowCount, 3);
  assert.deepEqual(uploader.result.progress, { file: 0, row: 0, total: 100 });
  await cluster.accept(first!);
  assert.deepEqual(uploader.result.progress, { file: 0, row: 2, total: 102 });
  await cluster.accept(second!);
  assert.deepEqual(uploader.result.progress, { file: 0, row: 6, total: 106 });
  assert.deepEqual(
    saved.map(({ row }) => row),
    [0, 2, 6],
  );
  const { rowCount, sequence } = await uploader.finish();
  assert.deepEqual([rowCount, sequence], [6, 3]);
});

it('progress is saved one state after another', async () => {
  const cluster = new Cluster(2);
  const saves: { readonly row: number; readonly end: () => void }[] = [];
  const { uploader, add } = uploaderTo(cluster, {
    onCommit: ({ progress }: UploadResult) =>
      new Promise((resolve) => saves.push({ row: progress.row, end: resolve })),
  });
  await add('a');
  await add('b');
  for (const upload of cluster.sent) await cluster.accept(upload);
  assert.deepEqual(
    saves.map(({ row }) => row),
    [1],
  );
  const finished = uploader.finish();
  saves[0]!.end();
  await turn();
  assert.deepEqual(
    saves.map(({ row }) => row),
    [1, 2],
  );
  assert.ok(await isPending(finished));
  saves[1]!.end();
  await finished;
});

it('an upload with an id of another one in flight is sent after that one', async () => {
  const cluster = new Cluster(4);
  const { uploader, add } = uploaderTo(cluster);
  await add('a', 'b');
  await add('c');
  const second = add('d', 'b');
  assert.ok(await isPending(second));
  await cluster.accept(cluster.sent[1]!);
  assert.ok(await isPending(second));
  await cluster.accept(cluster.sent[0]!);
  await second;
  assert.deepEqual(cluster.sent[2]!.ids, ['d', 'b']);
  // The ids of uploads that are over do not matter.
  await add('a');
  await cluster.acceptUntil(uploader.finish());
  assert.deepEqual(Object.fromEntries(cluster.state), { a: 5, b: 4, c: 2, d: 3 });
});

it('after a failure nothing more is sent, and the uploads in flight still count', async () => {
  const cluster = new Cluster(3);
  const { uploader, add } = uploaderTo(cluster);
  await add('a', 'b');
  await add('c', 'd', 'e');
  await add('f');
  const waiting = assert.rejects(add('g'), (error: unknown) => {
    assert.ok(error instanceof CliError);
    assert.equal(error.message, 'f:4: values: a hole');
    return true;
  });
  const [first, second, third] = cluster.sent;
  await cluster.refuse(second!, 1, 2);
  await waiting;
  const settled = uploader.settle();
  await cluster.accept(third!);
  assert.ok(await isPending(settled));
  await cluster.accept(first!);
  await settled;
  assert.equal(cluster.sent.length, 3);
  assert.equal(uploader.result.rowCount, 4);
  assert.deepEqual(uploader.result.progress, { file: 0, row: 3, total: 3 });
  await assert.rejects(uploader.finish(), CliError);
});

it('a node that cannot be reached is left out, and another target gets its upload', async () => {
  const cluster = new Cluster(2);
  const { uploader, saved, add } = uploaderTo(cluster);
  await add('a');
  await add('b');
  const third = add('c');
  await cluster.lose(cluster.sent[1]!);
  assert.deepEqual(cluster.leftOut, [1]);
  assert.ok(await isPending(third));
  await cluster.acceptUntil(third);
  const { rowCount, insertedCount } = await cluster.acceptUntil(uploader.finish());
  assert.deepEqual([rowCount, insertedCount], [3, 3]);
  assert.deepEqual(cluster.sent.map(({ target, ids }) => [target, ...ids]).sort(), [
    [0, 'a'],
    [0, 'b'],
    [0, 'c'],
    [1, 'b'],
  ]);
  assert.equal(saved.at(-1)!.row, 3);
});

it('an upload that its node has lost is not repeated after a failure', async () => {
  const cluster = new Cluster(2);
  const { uploader, add } = uploaderTo(cluster);
  await add('a');
  await add('b');
  await cluster.lose(cluster.sent[1]!);
  await cluster.refuse(cluster.sent[0]!);
  await uploader.settle();
  assert.equal(cluster.sent.length, 2);
  await assert.rejects(uploader.finish(), { message: 'f:0: values: a hole' });
});

it('the import fails if the server that the user named cannot be reached', async () => {
  const cluster = new Cluster(2);
  const { uploader, add } = uploaderTo(cluster);
  await add('a');
  await add('b');
  await cluster.lose(cluster.sent[0]!);
  await cluster.accept(cluster.sent[1]!);
  await assert.rejects(uploader.finish(), { code: 'network_error' });
  assert.equal(uploader.result.rowCount, 1);
  assert.deepEqual(uploader.result.progress, START);
});

it('an interruption sends nothing more, and waits for the uploads in flight', async () => {
  const cluster = new Cluster(2);
  const interruption = new AbortController();
  const { uploader, add } = uploaderTo(cluster, { interruption: interruption.signal });
  await add('a');
  await add('b');
  const third = add('c');
  interruption.abort();
  await cluster.accept(cluster.sent[1]!);
  await third;
  const settled = uploader.settle();
  assert.ok(await isPending(settled));
  await cluster.accept(cluster.sent[0]!);
  await settled;
  assert.equal(cluster.sent.length, 2);
  assert.deepEqual(uploader.result.progress, { file: 0, row: 2, total: 2 });
});

/** Adds the batches of a file from a row on, and sends all of them. */
async function importFrom(uploader: Uploader, batches: readonly RowBatch[], start: number) {
  for (const batch of batches) {
    const firstRow = batch.endRow - batch.rowCount;
    const skipped = Math.max(0, Math.min(batch.rowCount, start - firstRow));
    const rest = batchOf((batch.ids as string[]).slice(skipped), firstRow + skipped);
    if (rest.rowCount > 0) await uploader.add(rest, 0, firstRow + skipped);
  }
  await uploader.finish();
}

it('replies in any order, lost nodes and failures lead to the state of a sequential import', async () => {
  const random = createRandom(testSeed());
  const upTo = (count: number): number => Math.floor(random() * count);
  const roundCount = IS_NIGHTLY ? 5_000 : 100;
  for (let round = 0; round < roundCount; round++) {
    const expected = new Map<string, number>();
    let rowCount = 0;
    const batches = Array.from({ length: 1 + upTo(12) }, () => {
      const ids = Array.from({ length: 1 + upTo(4) }, () => `id${upTo(20)}`);
      const batch = batchOf(ids, rowCount);
      rowCount += ids.length;
      return batch;
    });
    for (const batch of batches) {
      for (const [row, id] of batch.ids!.entries()) expected.set(id!, batch.fileRow(row));
    }
    const state = new Map<string, number>();
    let progress = START;
    // With each attempt, failures become less likely.
    for (let attempt = 1; progress.row < rowCount; attempt++) {
      const cluster = new Cluster(1 + upTo(4), state);
      const { uploader } = uploaderTo(cluster, { start: progress });
      const failureShare = random() < 0.5 ? 0 : 0.3 / attempt;
      let isOver = false;
      let failure: unknown;
      const running = importFrom(uploader, batches, progress.row)
        .catch(async (error: unknown) => {
          failure = error;
          await uploader.settle();
        })
        .finally(() => (isOver = true));
      for (let idleTurns = 0; !isOver; ) {
        const upload = [...cluster.open][upTo(cluster.open.size)];
        if (upload === undefined) {
          assert.ok(++idleTurns < 100, `round ${round}: the import stands still`);
          await turn();
        } else {
          idleTurns = 0;
          const isLost = random() < 0.1;
          // The rows may have been written although the reply is lost.
          if (isLost && random() < 0.5) cluster.apply(upload, upTo(upload.rows.length + 1));
          if (isLost) await cluster.lose(upload);
          else if (random() < failureShare) await cluster.refuse(upload, upTo(upload.rows.length));
          else await cluster.accept(upload);
        }
      }
      await running;
      if (failure === undefined) assert.equal(uploader.result.progress.row, rowCount);
      ({ progress } = uploader.result);
      assert.equal(progress.total, progress.row);
    }
    assert.deepEqual(
      [...state].sort(([a], [b]) => (a < b ? -1 : 1)),
      [...expected].sort(([a], [b]) => (a < b ? -1 : 1)),
      `round ${round}`,
    );
  }
});
