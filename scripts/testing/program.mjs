// The program that a test process runs: registers each file as a suite and measures the CPU time of files and tests.
// Its arguments are pairs of a file's name and the path of its compiled module.

import { readFileSync, writeSync } from 'node:fs';
import { after, afterEach, before, beforeEach, describe } from 'node:test';
import { fileURLToPath } from 'node:url';

/** The pipe to scripts/testing/process.mjs. */
const PIPE = 3;
const TICKS_PER_SECOND = 100;
const LEFTOVERS = new URL('../../dist/test/support/leftovers.js', import.meta.url);

const { releaseLeftovers } = await import(fileURLToPath(LEFTOVERS));
const words = process.argv.slice(2);
for (let at = 0; at < words.length; at += 2) {
  const [name, module] = words.slice(at, at + 2);
  describe(name, async () => {
    let startSeconds = 0;
    before(() => send({ type: 'file', name, seconds: cpuSeconds() }));
    beforeEach(() => {
      startSeconds = cpuSeconds();
    });
    afterEach((test) => {
      send({ type: 'cpu', name: test.name, seconds: cpuSeconds() - startSeconds });
    });
    after(releaseLeftovers);
    await import(module);
  });
}
process.on('exit', () => send({ type: 'file', name: '', seconds: cpuSeconds() }));

/** CPU seconds of all threads of this process and of its child processes that have ended. */
function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ')[1].split(' ');
  return (user + system) / 1e6 + (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
}

function send(event) {
  writeSync(PIPE, `${JSON.stringify(event)}\n`);
}
