// A pool whose tasks get and give copies, as between threads, and that tells which tasks ran.

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
