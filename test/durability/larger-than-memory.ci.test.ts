// Loads, queries, filters and compacts a collection larger than the memory of its server, and restarts the server. The
// limit applies to the process's own memory; mapped files do not count.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadNativeFiles } from '../../src/platform/native-files.js';
import { createCaller, type ServerProcess, startServerProcess } from '../support/server-process.js';
import { eventually } from '../support/waiting.js';
import { GeneratedRows, streamRows } from './generated-rows.js';

/** A server alone needs 250 MB. The values take 600 MB and their codes another 250 MB. */
const LIMIT_BYTES = 550_000_000;
const DIMENSION = 512;
const ROW_COUNT = 300_000;
const REPLACED_COUNT = 60_000;
const TOP_K = 10;

const native = loadNativeFiles();
const mayLimit = spawnSync('prlimit', [`--data=${LIMIT_BYTES}`, 'true']).status === 0;
const skip = typeof native === 'string' ? native : !mayLimit && 'prlimit is not available';

it('a collection larger than the memory of its server answers exactly', { skip }, async () => {
  const rows = new GeneratedRows(DIMENSION);
  const questions = [1, 2, 3].map((i) => ({
    vector: rows.vector(ROW_COUNT + i),
    isIncluded: (row: number) => i < 3 || row % 1000 < 10,
  }));
  const expected = rows.nearest(questions, TOP_K, ROW_COUNT);
  const dataDirectory = mkdtempSync(join(tmpdir(), 'sagitta-larger-'));
  const start = (values: string) =>
    startServerProcess({
      dataDirectory,
      prefix: ['prlimit', `--data=${LIMIT_BYTES}`],
      settings: {
        SAGITTA_VALUES: values,
        SAGITTA_RETENTION_MS: '1000',
        SAGITTA_SEGMENT_VALUE_BYTES_MAX: '8388608',
      },
    });
  let server: ServerProcess | null = null;
  try {
    server = await start('auto');
    let caller = createCaller(server.url, 1);
    const check = async () => {
      for (const [i, { vector }] of questions.entries()) {
        const body = {
          vector: [...vector],
          top_k: TOP_K,
          ...(i === 2 && { filter: { n: { $lt: 10 } } }),
        };
        const reply = await caller.call('POST', '/v1/collections/c/query', body);
        assert.equal(reply.status, 200, reply.text);
        const { matches } = reply.json<{ matches: { id: string }[] }>();
        assert.deepEqual(
          matches.map(({ id }) => id),
          expected[i],
        );
      }
    };
    const rowsStored = async () => {
      const { text } = await caller.call('GET', '/metrics');
      return Number(/^sagitta_rows (\d+)$/m.exec(text)![1]);
    };
    const shape = { id: 'c', dimension: DIMENSION, metric: 'cosine' };
    assert.equal((await caller.call('POST', '/v1/collections', shape)).status, 200);
    const url = `${server.url}/v1/collections/c/vectors`;
    await streamRows(url, rows, [0, ROW_COUNT]);
    await check();
    await streamRows(url, rows, [0, REPLACED_COUNT]);
    await eventually('replaced rows are compacted', async () => {
      await sleep(100);
      return (await rowsStored()) < ROW_COUNT + REPLACED_COUNT / 2;
    });
    await check();
    caller.close();
    await server.stop();

    server = await start('auto');
    caller = createCaller(server.url, 1);
    await check();
    caller.close();
    await server.stop();

    // Reading the same data into memory exceeds the limit, which shows that it is effective.
    await assert.rejects(async () => {
      server = await start('memory');
      caller = createCaller(server.url, 1);
      await check();
    });
  } finally {
    await server?.kill();
    rmSync(dataDirectory, { recursive: true });
  }
});
