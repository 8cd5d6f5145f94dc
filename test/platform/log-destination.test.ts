// The log survives a full disk or a stalled reader, and does not prevent the process from exiting.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LogDestination } from '../../src/platform/log-destination.js';
import { makeDirectory, onSmallDisk } from '../storage/directories.js';
import { eventually } from '../support/waiting.js';

/** Runs a program with a LogDestination `log` on its stderr. */
function runWith(program: string, stderr: 'pipe' | number) {
  const url = JSON.stringify(
    new URL('../../src/platform/log-destination.js', import.meta.url).href,
  );
  const script = `import { LogDestination } from ${url};
    const log = new LogDestination(2);
    ${program}`;
  return spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', stderr],
    timeout: 90_000,
    encoding: 'utf8',
  });
}

describe('the log destination', () => {
  it('writes every line in order, even if the process exits at once', async () => {
    const program = `for (let i = 0; i < 5000; i++) log.write('line ' + i + '\\n'); process.exit(3);`;
    const path = join(await makeDirectory(), 'log');
    const file = await open(path, 'w');
    const toFile = runWith(program, file.fd);
    await file.close();
    assert.equal(toFile.status, 3);
    const expected = Array.from({ length: 5000 }, (_, i) => `line ${i}\n`).join('');
    assert.equal(await readFile(path, 'utf8'), expected);
    const toPipe = runWith(program, 'pipe');
    assert.equal(toPipe.stderr, expected);
  });

  it('writes all lines, including its own, in the given format', async () => {
    const path = join(await makeDirectory(), 'log');
    const file = await open(path, 'w');
    const log = new LogDestination(file.fd, (line) => line.toUpperCase());
    log.write('{"msg":"one"}\n');
    await eventually('the line is written', async () => (await file.stat()).size > 0);
    await file.close();
    assert.equal(await readFile(path, 'utf8'), '{"MSG":"ONE"}\n');
  });

  const skip = existsSync('/dev/full') ? false : 'there is no /dev/full on this system';
  it('lets the process exit when nothing can be written', { skip }, async () => {
    const full = await open('/dev/full', 'w');
    const program = `for (let i = 0; i < 10; i++) log.write('line\\n');
      setTimeout(() => log.write('later\\n'), 20);`;
    const startedAt = performance.now();
    assert.equal(runWith(program, full.fd).status, 0);
    await full.close();
    assert.ok(performance.now() - startedAt < 60_000);
  });

  it('reports the number of dropped lines when there is space again', async (t) => {
    const isDone = await onSmallDisk(1, async (disk) => {
      const path = join(disk, 'log');
      const file = await open(path, 'a');
      const log = new LogDestination(file.fd);
      const hasWritten = (text: string) =>
        eventually(text, async () => (await readFile(path, 'utf8')).endsWith(text));
      log.write('first\n');
      await hasWritten('first\n');
      await writeFile(join(disk, 'ballast'), Buffer.alloc(2_000_000)).catch(() => {});
      // Longer than the rest of the page that contains the first line.
      const long = `${'x'.repeat(3_000)}\n`;
      for (let i = 0; i < 4; i++) {
        log.write(long);
        await sleep(20);
      }
      await eventually('the page is full', async () => (await stat(path)).size >= 4_096);
      await sleep(100);
      await rm(join(disk, 'ballast'));
      log.write('last\n');
      await hasWritten('last\n');
      await file.close();
      const lines = (await readFile(path, 'utf8')).split('\n');
      assert.equal(lines[0], 'first');
      assert.equal(lines.at(-2), 'last');
      const report = JSON.parse(lines.at(-3)!) as { level: number; lines: number };
      assert.equal(report.level, 40);
      const wholeCount = lines.filter((line) => line.length === 3_000).length;
      assert.equal(report.lines, 4 - wholeCount);
      assert.ok(report.lines > 0);
    });
    if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
  });
});
