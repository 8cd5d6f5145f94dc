// Parts of the repository whose checks take minutes and depend on a closed set of files: they are checked when one of
// these files has changed, and not again before. `inputs` are files and folders. `tests` are parts of the paths of the
// *.ci.test.ts files that belong to the subject, and run after `commands`.

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
      // With instructions, registers and spills of each kernel, to compare with docs/performance.md.
      [NODE, 'scripts/build-kernels.mjs', 'cuda', '--report', '90a', '--report', '80'],
      [NODE, 'scripts/gpu/archive.mjs', '--programs'],
      // The script that measures a GPU, on an emulated one.
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
    // Not the sources: that they run is tested without an image.
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
