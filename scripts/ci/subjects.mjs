// Parts of the repository whose checks take minutes and depend only on a known set of files, so that CI repeats them
// only after one of these files has changed. `inputs` are files and folders. `tests` select the subject's *.ci.test.ts
// files by parts of their paths; they run after `commands`.

import { inputsOf, scriptsOf } from '../building/products.mjs';

const NODE = process.execPath;

export const SUBJECTS = {
  kernels: {
    inputs: [...inputsOf('kernels'), 'scripts/check-kernels.sh', 'test/kernels'],
    commands: [['bash', 'scripts/check-kernels.sh', '--quick']],
    tests: ['kernels/'],
  },
  cuda: {
    inputs: [
      ...inputsOf('gpu'),
      'src/engine/core',
      'src/engine/cuda',
      'src/tools/doctor',
      'src/tools/selftest',
      'test/engine/cuda',
      'test/tools/doctor',
    ],
    commands: [
      [NODE, 'scripts/build-kernels.mjs', 'cuda-emulated'],
      // Prints the instructions, registers and spills of each kernel, to compare with docs/performance.md.
      [NODE, 'scripts/build-kernels.mjs', 'cuda', '--report', '90a', '--report', '80'],
      [NODE, 'scripts/gpu/archive.mjs', '--programs'],
      // Runs the script that measures a GPU on an emulated GPU.
      [NODE, 'scripts/gpu/rehearse.mjs'],
    ],
    tests: ['engine/cuda/', 'tools/doctor/'],
  },
  tensorflow: {
    inputs: ['scripts/install-tensorflow.mjs', 'src/engine/tensor', 'test/engine/tensor'],
    commands: [[NODE, 'scripts/install-tensorflow.mjs', '--variant', 'cpu']],
    tests: ['engine/tensor/tensorflow-engine'],
  },
  images: {
    // Leaves out the sources, which are tested without an image.
    inputs: [...scriptsOf('image'), 'package-lock.json', 'scripts/sagitta.cjs'],
    commands: [
      [NODE, 'scripts/bundle/test.mjs'],
      [NODE, 'scripts/container/replay.mjs', '--dist', 'dist'],
    ],
    tests: [],
  },
  packages: {
    inputs: [
      ...inputsOf('langchain'),
      ...scriptsOf('server'),
      ...['openapi.json', 'package.json', 'packages/client', 'packages/langchain'],
      'scripts/install.mjs',
      'test/generators',
      'test/packages',
    ],
    commands: [
      [
        'bash',
        '-c',
        'mkdir -p build/generators && cp test/generators/package*.json build/generators/',
      ],
      ['npm', 'ci', '--prefix', 'build/generators', '--ignore-scripts', '--no-audit', '--no-fund'],
      [NODE, 'scripts/packages/publish.mjs', '--dry-run'],
    ],
    tests: ['test/generators/', 'test/packages/'],
  },
  python: {
    inputs: ['openapi.json', 'python'],
    commands: [['bash', 'scripts/ci/python-package.sh']],
    tests: [],
  },
  console: {
    inputs: [...inputsOf('console'), 'openapi.json', 'packages/console'],
    commands: [],
    tests: ['packages/console/'],
  },
};
