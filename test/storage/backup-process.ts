// A process that makes one backup and says when it begins, to be killed meanwhile.

import { openLmdbStore } from '../../src/storage/lmdb-store.js';

const [directory, folder] = process.argv.slice(2);
const store = await openLmdbStore({ directory: directory! });
process.send!('begins');
await store.backup(folder!, async (list) => {
  const [entry] = [...list(['blobs'])];
  return { blobNames: Buffer.from(entry!.value).toString().split(' '), collectionCount: 1 };
});
// Until it is killed: its end would be taken for the kill.
setInterval(() => {}, 1_000);
