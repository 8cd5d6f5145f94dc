// The program of a server process for tests and benches that kill or measure it. It prints its
// address when it listens, and `ready` when every collection is loaded.

import { startServer } from '../../src/main.js';
import { loadConfig } from '../../src/platform/config.js';
import { START_AGAIN } from './server-exit.js';

const server = await startServer(loadConfig({ env: process.env })).catch((error: unknown) => {
  console.error(error);
  // As what a cluster says of a moment, a start during an election is one that a process manager repeats.
  const { code } = error as { code?: string };
  process.exit(code === 'configuration_invalid' || code === 'no_leader' ? START_AGAIN : 1);
});
process.stdout.write(`${server.url}\n`);
await server.loaded;
process.stdout.write('ready\n');
server.failed.then(() => server.stop()).then(() => process.exit(1));
process.once('SIGTERM', () => {
  server.stop().then(() => process.exit(0));
});
