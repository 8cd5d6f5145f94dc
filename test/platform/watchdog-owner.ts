// A process with a watchdog. When a byte arrives on stdin, its main thread blocks until the file of the first argument
// exists. It writes the port of the liveness to stdout, and `runs` after it was blocked. A byte of `q` ends it.

import { existsSync, writeSync } from 'node:fs';
import { Watchdog } from '../../src/platform/watchdog.js';

const [, , release = '', notifyMs] = process.argv;
const watchdog = await Watchdog.start({
  config: {
    host: '127.0.0.1',
    livenessPort: 0,
    serviceManager: notifyMs === undefined ? null : { watchdogMs: Number(notifyMs) },
  },
  logFormat: 'json',
  stillMsMax: 1_000,
  onFailure: (error) => {
    throw error;
  },
});
watchdog.ready();
writeSync(1, `${watchdog.port}\n`);
process.stdin.on('data', (bytes) => {
  if (String(bytes) === 'q') {
    watchdog.stopping();
    void watchdog.close();
    process.stdin.pause();
    return;
  }
  const pause = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(release)) Atomics.wait(pause, 0, 0, 10);
  writeSync(1, 'runs\n');
});
