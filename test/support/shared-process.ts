// Processes shared by all test files of a process. They end with it and never prevent it from ending.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';

/** Ends the child when this process has nothing left to do, and then calls `release`. */
export function endWithThisProcess(child: ChildProcess, release: () => void = () => {}): void {
  let isEnding = false;
  const end = async (): Promise<void> => {
    if (isEnding) return;
    isEnding = true;
    if (child.exitCode === null && child.signalCode === null) {
      child.ref();
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    release();
  };
  // Not on 'exit', because the CPU time of a child counts only once this process has seen its end.
  process.on('beforeExit', end);
  process.once('exit', () => child.kill('SIGKILL'));
}

/** Lets this process end while the child is running. */
export function unrefChild(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
  for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref();
}
