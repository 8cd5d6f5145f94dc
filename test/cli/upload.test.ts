// What travels together, what waits for what, and how errors find their rows: the uploader against
// a service whose replies come in any order.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError } from '../../src/cli/failure.js';
import { type ImportRow, makeRow } from '../../src/cli/import-row.js';
import { Uploader } from '../../src/cli/upload.js';
import { SagittaClientError, type WriteReply } from '../../src/client/client.js';

const OPTIONS = { rowsPerBatch: 4, batchesInFlightMax: 3, onCommit: () => {} };

function row(id: string | undefined, value: number): ImportRow {
  return makeRow(`f:${value}`, id, new Float32Array([value]), '{}');
}

/** Takes a moment of its own for each write, and looks at what travels together. */
class Service {
  readonly batches: string[][] = [];
  readonly stored = new Map<string, string>();
  inFlightMax = 0;
  readonly #inFlight = new Set<string>();
  #inFlightCount = 0;

  async upsertText(texts: readonly string[]): Promise<WriteReply> {
    const rows = texts.map((text) => JSON.parse(text) as { id: string; values: string });
    const ids = rows.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length, 'an id is twice in one batch');
    for (const id of ids) assert.ok(!this.#inFlight.has(id), `${id} travels twice at once`);
    this.batches.push(ids);
    for (const id of ids) this.#inFlight.add(id);
    this.inFlightMax = Math.max(this.inFlightMax, ++this.#inFlightCount);
    await sleep(this.batches.length % 3 === 0 ? 1 : 6);
    this.#inFlightCount--;
    for (const { id, values } of rows) {
      this.#inFlight.delete(id);
      this.stored.set(id, values);
    }
    const sequence = this.batches.length;
    return { upserted_count: ids.length, inserted_count: ids.length, updated_count: 0, sequence };
  }
}

it('fills batches and keeps as many under way as it may', async () => {
  const service = new Service();
  const counts: number[] = [];
  const uploader = new Uploader(service, { ...OPTIONS, onCommit: (count) => counts.push(count) });
  for (let at = 0; at < 30; at++) await uploader.add(row(`r${at}`, at));
  const result = await uploader.finish();
  assert.deepEqual(
    service.batches.map((batch) => batch.length),
    [4, 4, 4, 4, 4, 4, 4, 2],
  );
  assert.equal(service.inFlightMax, 3);
  assert.equal(result.rowCount, 30);
  assert.equal(result.insertedCount, 30);
  assert.equal(counts.length, 8);
  assert.equal(counts.at(-1), 30);
});

it('rows with one id never share a batch or travel at once, so the last one stays', async () => {
  const service = new Service();
  const uploader = new Uploader(service, OPTIONS);
  const last = new Map<string, string>();
  for (let at = 0; at < 200; at++) {
    // Close repeats, and far ones.
    const added = row(`r${(at * at) % 11}`, at);
    last.set(added.id!, (JSON.parse(added.text) as { values: string }).values);
    await uploader.add(added);
  }
  await uploader.finish();
  assert.deepEqual(service.stored, last);
});

it('large rows travel in small batches', async () => {
  const service = new Service();
  const uploader = new Uploader(service, { ...OPTIONS, rowsPerBatch: 100 });
  const text = JSON.stringify({ id: 'x', values: 'y'.repeat(3_000_000) });
  for (const id of ['a', 'b', 'c']) {
    await uploader.add({ ...row(id, 1), text: text.replace('"x"', `"${id}"`) });
  }
  await uploader.finish();
  assert.deepEqual(service.batches, [['a', 'b'], ['c']]);
});

it('an error of the service ends the upload and names the place of the row', async () => {
  const detail = 'a hole';
  const refusal = new SagittaClientError('invalid_vector', detail, {
    items: [{ pointer: '/vectors/1/values', code: 'invalid_vector', detail }],
  });
  let writeCount = 0;
  const service = {
    async upsertText(): Promise<WriteReply> {
      if (++writeCount === 2) throw refusal;
      return { upserted_count: 4, inserted_count: 4, updated_count: 0, sequence: writeCount };
    },
  };
  const uploader = new Uploader(service, { ...OPTIONS, batchesInFlightMax: 1 });
  await assert.rejects(
    async () => {
      for (let at = 0; at < 100; at++) await uploader.add(row(`r${at}`, at));
    },
    (error: unknown) => error instanceof CliError && error.message === 'f:5: values: a hole',
  );
  await uploader.settle();
  assert.equal(writeCount, 2);
  assert.equal(uploader.result.rowCount, 4);
});

it('an error that points at no row is passed on as it is', async () => {
  const failure = new SagittaClientError('storage_full', 'the disk is full');
  const service = { upsertText: () => Promise.reject<WriteReply>(failure) };
  const uploader = new Uploader(service, OPTIONS);
  await uploader.add(row('a', 1));
  await assert.rejects(uploader.finish(), (error) => error === failure);
});
