// Starts committer.ts as a child process and reads its output.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const COMMITTER = fileURLToPath(new URL('./committer.js', import.meta.url));
const WAIT_MS_MAX = 30_000;
const started: ChildProcess[] = [];

// The child of a failed test would prevent the test run from ending.
after(() => {
  for (const child of started) child.kill('SIGKILL');
});

export interface Committer {
  readonly process: ChildProcess;
  /** `ready`, then every acknowledged sequence; complete when the process has ended. */
  readonly lines: readonly string[];
  readonly errors: () => string;
  /** Resolves to whether it opened the store, as soon as it did or ended. */
  isReady(): Promise<boolean>;
  kill(): Promise<void>;
}

/** @param before a command to run it with, such as `unshare`. */
export function startCommitter(
  directory: string,
  options: { mode?: 'busy' | 'idle'; before?: readonly string[]; logBytesMax?: number } = {},
): Committer {
  const [command, ...rest] = [
    ...(options.before ?? []),
    process.execPath,
    COMMITTER,
    directory,
    options.mode ?? 'busy',
    ...(options.logBytesMax === undefined ? [] : [String(options.logBytesMax)]),
  ];
  const child = spawn(command!, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  started.push(child);
  const closed = once(child, 'close');
  const lines: string[] = [];
  let errors = '';
  let unfinished = '';
  child.stdout.on('data', (chunk: Buffer) => {
    const parts = (unfinished + chunk.toString()).split('\n');
    unfinished = parts.pop()!;
    lines.push(...parts);
  });
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  return {
    process: child,
    lines,
    errors: () => errors,
    async isReady() {
      const deadline = Date.now() + WAIT_MS_MAX;
      while (!lines.includes('ready') && !hasEnded()) {
        if (Date.now() > deadline)
          throw new Error(`the child is neither ready nor gone: ${errors}`);
        await sleep(5);
      }
      return lines.includes('ready');
    },
    async kill() {
      if (!hasEnded()) child.kill('SIGKILL');
      await closed;
    },
  };
}
