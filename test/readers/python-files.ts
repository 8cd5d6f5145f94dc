// Creates test files with other programs, in one Python process per test file.

import { spawnSync } from 'node:child_process';

const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';

/** Exits with 1 unless all modules are installed. Importing them would take seconds. */
const FIND = `
import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))
`;

/** The reason for skipping tests, or false if the interpreter has the modules. */
export function skipWithout(...modules: readonly string[]): string | false {
  const { status } = spawnSync(python, ['-c', FIND, ...modules]);
  if (status === 0) return false;
  return `${python} lacks one of ${modules.join(', ')}; SAGITTA_TEST_PYTHON names one that has them`;
}

/** Runs a script in the directory and returns its output. */
export function runPython(script: string, folder: string, ...args: readonly string[]): string {
  const run = spawnSync(python, ['-c', script, ...args], { cwd: folder, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(run.stderr);
  return run.stdout;
}
