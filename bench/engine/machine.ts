// The machine and commit of a run, and how benches start servers.

import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

/** The repository; this file runs from dist/bench/engine. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Threads for the engine, the peers and the measured peaks. */
export const THREAD_COUNT = availableParallelism();

export function describeMachine(): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown CPU';
  return `${THREAD_COUNT} × ${model}, Node ${process.version}, commit ${commit()}`;
}

/** Returns the commit's hash, with "+ changes" if the working tree differs. */
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

/** Settings of a server process, as in the first line of src/cli/main.ts. */
export const COMMAND_SETTINGS = {
  settings: { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '131072' },
  nodeArguments: ['--max-semi-space-size=8'],
} as const;
