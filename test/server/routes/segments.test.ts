import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { eventually } from '../../support/waiting.js';
import { createService, expectProblem, type Service } from '../harness.js';

const ROWS_MAX = 64;

interface Segment {
  readonly state: string;
  readonly number: number;
  readonly row_count: number;
  readonly vector_count: number;
  readonly file_bytes: number;
  readonly memory: { readonly host_bytes: number };
}

/** Two full segments in files, and an active one. */
async function openService(t: TestContext): Promise<Service> {
  const service = await createService({
    limits: { ...DEFAULT_LIMITS, segmentRowsMax: ROWS_MAX },
  });
  t.after(() => service.close());
  await service.call('POST', '/collections', { body: { id: 'c', dimension: 2 } });
  const vectors = Array.from({ length: 2 * ROWS_MAX + 10 }, (_, at) => ({
    id: `v${at}`,
    values: [at, 1],
  }));
  await service.call('POST', '/collections/c/vectors', { body: { vectors } });
  await eventually('the full segments are in files', async () => {
    const { json } = await service.call('GET', '/collections/c/segments');
    return json.segments.filter(({ state }: Segment) => state === 'stored').length === 2;
  });
  return service;
}

describe('the segments of a collection', () => {
  it('are listed with their rows, memory and files', async (t) => {
    const service = await openService(t);
    const { json } = await service.call('GET', '/v1/collections/c/segments');
    const segments: readonly Segment[] = json.segments;
    assert.deepEqual(
      segments.map(({ number, state, row_count }) => [number, state, row_count]),
      [
        [1, 'stored', ROWS_MAX],
        [2, 'stored', ROWS_MAX],
        [3, 'active', 10],
      ],
    );
    assert.ok(segments[0]!.file_bytes > ROWS_MAX * 2 * 4);
    assert.equal(segments[2]!.file_bytes, 0);
    for (const { memory } of segments) assert.ok(memory.host_bytes > 0);
    const fileBytes = segments.reduce((sum, { file_bytes }) => sum + file_bytes, 0);
    assert.deepEqual([json.total, json.has_more, json.file_bytes], [3, false, fileBytes]);
  });

  it('count deleted rows as rows, not as vectors', async (t) => {
    const service = await openService(t);
    await service.call('DELETE', '/collections/c/vectors/v3');
    const { json } = await service.call('GET', '/collections/c/segments');
    const counts = json.segments.map((segment: Segment) => segment.vector_count);
    assert.deepEqual(counts, [ROWS_MAX - 1, ROWS_MAX, 10]);
    assert.equal(json.segments[0].row_count, ROWS_MAX);
  });

  it('have the bytes on disk of the record of the collection, and its memory without ids', async (t) => {
    const service = await openService(t);
    const { json } = await service.call('GET', '/collections/c/segments');
    const { json: record } = await service.call('GET', '/collections/c');
    assert.equal(record.disk_bytes, json.file_bytes + json.log_bytes);
    const hostBytes = json.segments.reduce(
      (sum: number, { memory }: Segment) => sum + memory.host_bytes,
      0,
    );
    assert.ok(record.memory.host_bytes > hostBytes);
    const { text } = await service.call('GET', '/metrics');
    assert.match(text, new RegExp(`^sagitta_host_bytes ${record.memory.host_bytes}$`, 'm'));
  });

  it('are paged', async (t) => {
    const service = await openService(t);
    const first = (await service.call('GET', '/collections/c/segments?limit=2')).json;
    assert.deepEqual([first.segments.length, first.has_more, first.total], [2, true, 3]);
    const url = `/collections/c/segments?cursor=${first.next_cursor}`;
    const second = (await service.call('GET', url)).json;
    assert.deepEqual(
      [second.segments.map(({ number }: Segment) => number), second.has_more],
      [[3], false],
    );
    const wrong = service.call('GET', '/collections/c/segments?cursor=%21');
    await expectProblem(wrong, 400, 'cursor_invalid');
  });
});
