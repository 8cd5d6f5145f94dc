// A pool that copies the inputs and results of its tasks, as threads do, and records which tasks ran.

import { createInlinePool, type WorkerPool } from '../../src/platform/pool.js';

export function createCopyingPool(threadCount: number) {
  const inline = createInlinePool();
  const names: string[] = [];
  const pool: WorkerPool = {
    ...inline,
    threadCount,
    async run(task, input) {
      names.push(task.name);
      return structuredClone(await inline.run(task, structuredClone(input)));
    },
  };
  return { pool, names };
}
