// Tools that parts of the nightly run need, and why a part is left out where one is missing.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const isCommand = (name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0;

/** By name: whether it is there, and how to get it. */
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

/** What is missing of the named tools; undefined when nothing is. */
export function missingTool(names) {
  const missing = names.find((name) => !TOOLS[name][0]());
  return missing === undefined ? undefined : `no ${missing} (${TOOLS[missing][1]})`;
}
