// The program of server processes that tests and benches kill or measure. It prints its address when it listens, and
// `ready` when every collection is loaded.

import { createRequire } from 'node:module';
import { packageFile } from '../../src/common/package-files.js';
import { START_AGAIN } from './server-exit.js';

// The installed program starts in a fraction of the time of separate modules.
const { startServer, loadConfig } = createRequire(import.meta.url)(
  packageFile('dist/app/main.js'),
) as typeof import('../../src/main.js');

const server = await startServer(loadConfig({ env: process.env })).catch((error: unknown) => {
  console.error(error);
  // A start during an election fails because of a temporary state of the cluster; a process manager would retry it.
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
