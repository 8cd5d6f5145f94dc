// Makes one backup and prints when it begins, so that a test can kill the process.

import { openStore } from '../../src/storage/open-store.js';

const [directory, folder] = process.argv.slice(2);
const store = await openStore({ directory: directory! });
process.send!('begins');
await store.backup(folder!, async (list) => {
  const [entry] = [...list(['blobs'])];
  return { blobNames: Buffer.from(entry!.value).toString().split(' '), collectionCount: 1 };
});
// Keeps running until the process is killed.
setInterval(() => {}, 1_000);
