// node dist/test/hostile/disk/main.js [--calls pwrite,fsync] [--faults eio,enospc,torn] [--every 1] [--times 1]
//   [--seed N] [--random ROUNDS]
// Every n-th call of a round has each of the faults, one at a time. `--random` runs rounds with short writes.

import { parseArgs } from 'node:util';
import { createRandom } from '../../database/harness.js';
import { FaultyServer } from './disk.js';

const { values } = parseArgs({
  options: {
    library: { type: 'string', default: '/tmp/faults-b.so' },
    random: { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
  },
});
void createRandom;
const server = await FaultyServer.start(values.library);
try {
  let t = Date.now();
  console.log(await server.count(), Date.now() - t);
  t = Date.now();
  console.log(await server.count(), Date.now() - t);
  for (let i = 0; i < Number(values.random); i++) {
    t = Date.now();
    console.log(await server.runRandom({ share: 0.05, seed: i + Number(values.seed) }), Date.now() - t);
  }
} finally {
  console.log(server.log.slice(-3000));
  await server.close();
}
