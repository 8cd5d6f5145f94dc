// The tools that parts of the nightly run need, and the reason given for leaving a part out if its tool is missing.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const isCommand = (name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0;

/** A check for each tool and how to install it, by name. */
const TOOLS = {
  nats: [
    () => existsSync('build/nats') || isCommand('nats-server'),
    'node scripts/install-nats.mjs',
  ],
  compiler: [() => isCommand('g++'), 'apt-get install g++'],
  clang: [() => isCommand('clang++'), 'apt-get install clang libclang-rt-14-dev'],
  nvcc: [() => isCommand('nvcc') || existsSync('/usr/local/cuda/bin/nvcc'), 'a CUDA toolkit'],
  chromium: [() => isCommand('chromium'), 'apt-get install chromium'],
  cgroup: [() => process.getuid() === 0, 'run as root'],
};

/** Describes the first missing tool; undefined if none is missing. */
export function missingTool(names) {
  const missing = names.find((name) => !TOOLS[name][0]());
  return missing === undefined ? undefined : `no ${missing} (${TOOLS[missing][1]})`;
}
