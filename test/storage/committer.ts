// A child process that tests kill or compete with. It opens the store in the given directory, commits as fast as it can
// and prints each sequence once it is acknowledged. A commit consists of a record, the same number as a value, and
// sometimes a trim. Further arguments: `idle` to commit nothing, and the size of a log.

import { openStore } from '../../src/storage/open-store.js';

const COMMITTER_COUNT = 8;
const TRIM_EVERY = 50;
const KEPT_COUNT = 200;

const directory = process.argv[2]!;
const logBytes = process.argv[4];
const store = await openStore({
  directory,
  ...(logBytes !== undefined && { logBytesMax: Number(logBytes) }),
});
let sequence = Number(Buffer.from(store.get(['count']) ?? []).toString() || 0);

async function commitNext(): Promise<void> {
  const mine = ++sequence;
  const record = new Uint8Array(1_500).fill(mine % 251);
  const trims = mine % TRIM_EVERY === 0 && mine > KEPT_COUNT;
  await store.commit([
    { kind: 'append', log: 'l', sequence: mine, record },
    ...(trims ? [{ kind: 'trim', log: 'l', throughSequence: mine - KEPT_COUNT } as const] : []),
    { kind: 'put', key: ['count'], value: Buffer.from(String(mine)) },
  ]);
  process.stdout.write(`${mine}\n`);
}

process.stdout.write('ready\n');
if (process.argv[3] !== 'idle') {
  await Promise.all(
    Array.from({ length: COMMITTER_COUNT }, async () => {
      while (true) await commitNext();
    }),
  );
} else {
  setInterval(() => {}, 60_000);
}
