// Where the bench ran: without it a figure says nothing.

import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

/** The compiled bench is at dist/bench/engine. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Threads that the engine, the peers and the measured peaks all get. */
export const THREAD_COUNT = availableParallelism();

export function describeMachine(): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown CPU';
  return `${THREAD_COUNT} × ${model}, Node ${process.version}, commit ${commit()}`;
}

/** With "+ changes" when the working tree is not what the commit says. */
function commit(): string {
  const hash = git('rev-parse', '--short', 'HEAD');
  if (hash === null) return 'unknown';
  return git('status', '--porcelain') === '' ? hash : `${hash} + changes`;
}

function git(...words: string[]): string | null {
  try {
    return execFileSync('git', words, { cwd: ROOT, stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .trim();
  } catch {
    return null;
  }
}
