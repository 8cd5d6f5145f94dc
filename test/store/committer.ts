// A child process for the kill test: commits pairs of a log record and a counter as fast as it can
// and prints each sequence once it is acknowledged.

import { openLmdbStore } from '../../src/store/lmdb-store.js';

const directory = process.argv[2]!;
const store = await openLmdbStore({ directory });
let sequence = 0;
for (const entry of store.readLog('l', 0)) sequence = entry.sequence;

async function commitNext(): Promise<void> {
  const mine = ++sequence;
  const record = new Uint8Array(1500).fill(mine % 251);
  await store.commit([
    { kind: 'append', log: 'l', sequence: mine, record },
    { kind: 'put', key: ['count'], value: Buffer.from(String(mine)) },
  ]);
  process.stdout.write(`${mine}\n`);
}

process.stdout.write('ready\n');
await Promise.all(
  Array.from({ length: 8 }, async () => {
    while (true) await commitNext();
  }),
);
