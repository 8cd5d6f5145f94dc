// Data directories for the tests of `sagitta backup`, `verify` and `restore`, made without a server.

import { batchOf, openDatabase } from '../database/harness.js';
import { openIn } from '../storage/directories.js';

/** Creates a data directory with the collection `c`, which has segment files and a log. */
export async function makeData(directory: string): Promise<void> {
  const store = await openIn(directory);
  const database = await openDatabase({ store });
  const input = {
    vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
    description: null,
    labels: {},
  } as const;
  await database.createCollection({ id: 'c', ...input });
  for (let n = 0; n < 8; n++) {
    const rows = Array.from({ length: 20 }, (_, i) => ({
      id: `v${n * 15 + i}`,
      values: [n, i],
      metadata: '{}',
    }));
    await database.collection('c').write(batchOf(rows), { mode: 'upsert' });
  }
  await database.close();
  await store.close();
}

/** Creates a data directory in which an entry of the collection `c` has a future format version. */
export async function newerCopy(
  entry: 'collection' | 'manifest',
  directory: string,
): Promise<void> {
  await makeData(directory);
  const store = await openIn(directory);
  const [{ key, value }] = [...store.list([entry])] as [{ key: string[]; value: Uint8Array }];
  const text = Buffer.from(value).toString();
  const newer = Buffer.from(text.replace('"formatVersion":1', '"formatVersion":2'));
  await store.commit([{ kind: 'put', key, value: newer }]);
  await store.close();
}
