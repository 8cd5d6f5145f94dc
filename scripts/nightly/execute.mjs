// Executes the steps of a part, logs their output, and kills whatever they have started: their process groups, and
// processes outside these, which it recognises by a variable in their environment.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { killIfRunning, processesWith } from '../testing/marked-processes.mjs';

/** Environment variable set for all processes of a part. */
const MARK = 'SAGITTA_NIGHTLY_RUN';
/** A part is considered hung after this many times its minutes plus a constant. */
const HANG_FACTOR = 10;
const HANG_MINUTES = 20;
const MINUTE_MS = 60_000;

/** Running processes, to be killed on a signal. */
const running = new Set();

export function endAll() {
  for (const end of running) end();
}

/**
 * Executes all steps, even after a failure. Returns the outcome: `passed`, or a description of the failure.
 * @param context the argument of `steps` in parts.mjs, with the minutes of this run
 */
export async function executePart(part, context, logPath) {
  const log = createWriteStream(logPath);
  const mark = `${part.name}-${process.pid}-${Date.now()}`;
  const env = { ...process.env, [MARK]: mark, SAGITTA_TEST_SEED: `${context.seed}` };
  const groups = new Set();
  let isHanging = false;
  const end = () => {
    for (const group of groups) killIfRunning(-group);
    for (const id of processesWith(MARK, mark)) killIfRunning(id);
  };
  running.add(end);
  const hangMs = (HANG_FACTOR * context.minutes + HANG_MINUTES) * MINUTE_MS;
  const timer = setTimeout(() => {
    isHanging = true;
    end();
  }, hangMs);
  const start = ([command, ...words]) => {
    const executable = command === 'node' ? process.execPath : command;
    const child = spawn(executable, words, {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    if (child.pid !== undefined) groups.add(child.pid);
    for (const stream of [child.stdout, child.stderr]) stream.pipe(log, { end: false });
    return child;
  };
  const failures = [];
  try {
    for (let loop = 0; loop < part.busyLoops; loop++) start(['node', '-e', 'for (;;);']);
    for (const step of part.steps(context)) {
      if (isHanging) break;
      const line = step.join(' ');
      log.write(`── ${line}\n`);
      const [code, signalName] = await once(start(step), 'close').catch((error) => [error.message]);
      if (code !== 0) failures.push(`${line}: ${signalName ?? code}`);
    }
  } finally {
    clearTimeout(timer);
    end();
    running.delete(end);
    log.end();
  }
  if (isHanging) return `did not end within ${(hangMs / MINUTE_MS).toFixed(0)} minutes`;
  return failures.length === 0 ? 'passed' : `failed: ${failures.join('; ')}`;
}
