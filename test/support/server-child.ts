// The program of a server process for tests and benches that kill or measure it. It prints its
// address when it listens, and `ready` when every collection is loaded.

import { startServer } from '../../src/main.js';
import { loadConfig } from '../../src/platform/config.js';

const server = await startServer(loadConfig({ env: process.env }));
process.stdout.write(`${server.url}\n`);
await server.loaded;
process.stdout.write('ready\n');
server.failed.then(() => server.stop()).then(() => process.exit(1));
process.once('SIGTERM', () => {
  server.stop().then(() => process.exit(0));
});
