// The parts of the nightly run: the commands of each, its default duration, and the paths it guards. Before a change to
// one of these paths is merged, the part has to pass: `npm run test:nightly -- --changed`.
//
// A part is `{ name, minutes, isScaled, needs, tests, guards, steps }`. `--minutes` scales the minutes of scaled
// parts; the other parts take their minutes on two cores. `needs` names tools in tools.mjs. `tests` selects test files
// by parts of their paths; these run in this part only. `steps({ seed, minutes, folder })` returns the commands to
// execute. A command begins with `node`, which stands for this version of Node, or with a program in PATH.

import { inputsOf, scriptsOf } from '../building/products.mjs';

const HOSTILE = 'dist/test/hostile';
const FAULTS = 'dist/test/cluster/faults/main.js';
const LOGS = [
  'src/cluster/logs/',
  'src/cluster/service/',
  'test/cluster/faults/',
  'test/cluster/nats-servers.ts',
];
const CLUSTER = ['src/cluster/', 'src/database/', 'src/storage/', 'test/cluster/'];
const HARNESS = ['test/hostile/harness/', 'test/support/server-'];
const BUILD = ['package.json', 'package-lock.json', ...scriptsOf('image')];

const BENCHES = [
  ...[
    'service',
    'filter',
    'aggregate',
    'browse',
    'projection',
    'text',
    'hybrid',
    'scores',
    'engine',
  ],
  ...['rest', 'batches', 'loading', 'memory', 'pauses', 'cluster', 'console'],
];

/** Runs a program that takes `--minutes` and `--seed`. */
const program =
  (path, ...options) =>
  ({ seed, minutes }) => [
    ['node', path, '--minutes', minutes.toFixed(2), '--seed', `${seed}`, ...options],
  ];

/** Runs the test files of the part with all rounds of random tests. */
const testsOf =
  (...parts) =>
  () => [['node', 'scripts/test.mjs', '--nightly', ...parts]];

const LISTED = [
  {
    name: 'random-order',
    minutes: 20,
    guards: ['test/support/', 'scripts/test.mjs', 'scripts/testing/'],
    steps: ({ seed, testsOfOthers }) => [
      // The tests of the GPU engine use the emulated kernels.
      ['node', 'scripts/build-kernels.mjs', 'cuda-emulated', '--if-possible'],
      [
        ...['node', 'scripts/test.mjs', '--nightly', '--random', `${seed}`],
        ...['.nightly.test.ts', ...testsOfOthers].flatMap((part) => ['--except', part]),
      ],
    ],
  },
  {
    name: 'busy-machine',
    minutes: 8,
    guards: ['test/support/', 'scripts/test.mjs', 'scripts/testing/'],
    busyLoops: 2,
    steps: ({ seed }) => [['node', 'scripts/test.mjs', '--random', `${seed}`]],
  },
  {
    name: 'nightly-tests',
    minutes: 6,
    guards: ['test/support/', 'test/hostile/'],
    steps: ({ testsOfOthers }) => [
      [
        ...['node', 'scripts/test.mjs', '--nightly', '.nightly.test.ts'],
        ...testsOfOthers.flatMap((part) => ['--except', part]),
      ],
    ],
  },
  {
    name: 'histories',
    minutes: 6,
    isScaled: true,
    guards: ['src/database/', 'src/storage/', 'src/segment/', 'test/hostile/checker/', ...HARNESS],
    steps: program(`${HOSTILE}/checker/main.js`),
  },
  {
    name: 'cluster-histories',
    minutes: 6,
    isScaled: true,
    needs: ['nats'],
    guards: [...CLUSTER, 'test/hostile/checker/', ...HARNESS],
    steps: program('dist/test/cluster/checker/main.js'),
  },
  {
    name: 'cluster-simulations',
    minutes: 10,
    isScaled: true,
    guards: CLUSTER,
    steps: program('dist/test/cluster/simulation/main.js'),
  },
  {
    name: 'node-faults',
    minutes: 8,
    isScaled: true,
    needs: ['nats'],
    guards: [...CLUSTER, ...HARNESS],
    steps: program(FAULTS, '--of', 'nodes', '--faults', '100000'),
  },
  {
    name: 'log-faults',
    minutes: 3,
    isScaled: true,
    needs: ['nats'],
    guards: LOGS,
    steps: program(FAULTS, '--of', 'log', '--faults', '100000'),
  },
  {
    name: 'rot-service',
    minutes: 5,
    isScaled: true,
    guards: ['src/storage/', 'src/segment/', 'src/tools/verify/', 'test/hostile/rot/', ...HARNESS],
    steps: program(`${HOSTILE}/rot/main.js`, '--cases', '1000000'),
  },
  {
    name: 'rot-store',
    minutes: 3,
    isScaled: true,
    guards: ['src/storage/', 'src/tools/verify/', 'test/hostile/rot/', ...HARNESS],
    steps: program(`${HOSTILE}/rot/main.js`, '--cases', '1000000', '--store'),
  },
  {
    name: 'rot-cluster',
    minutes: 3,
    needs: ['nats'],
    tests: ['cluster/log-rot', 'cluster/node-rot'],
    guards: ['src/cluster/', 'test/cluster/log-rot', 'test/cluster/node-rot', ...LOGS],
    steps: testsOf('cluster/log-rot', 'cluster/node-rot'),
  },
  {
    name: 'disk-faults',
    minutes: 6,
    isScaled: true,
    needs: ['compiler'],
    guards: ['src/storage/', 'src/segment/', 'test/hostile/disk/', ...HARNESS],
    steps: program(`${HOSTILE}/disk/main.js`, '--random', '10'),
  },
  {
    name: 'kills',
    minutes: 4,
    isScaled: true,
    needs: ['compiler'],
    guards: [
      ...['src/storage/', 'test/storage/committe', 'test/hostile/kills/', 'test/hostile/disk/'],
      ...HARNESS,
    ],
    steps: program(`${HOSTILE}/kills/main.js`, '--store', '100000', '--server', '100000'),
  },
  {
    name: 'decoders',
    minutes: 4,
    isScaled: true,
    guards: [
      'src/formats/',
      'src/server/bodies/',
      'src/server/ingest/',
      'src/readers/',
      'test/hostile/decoders/',
    ],
    steps: program(`${HOSTILE}/decoders/main.js`),
  },
  {
    name: 'native',
    minutes: 3,
    isScaled: true,
    needs: ['clang'],
    guards: [...inputsOf('kernels'), 'test/hostile/native/'],
    steps: program(`${HOSTILE}/native/main.js`),
  },
  {
    name: 'fuzz',
    minutes: 6,
    isScaled: true,
    guards: ['src/server/', 'openapi.json', 'test/hostile/fuzz/', ...HARNESS],
    steps: program(`${HOSTILE}/fuzz/main.js`, '--warm-up', '1'),
  },
  {
    name: 'overload',
    minutes: 2,
    isScaled: true,
    needs: ['cgroup'],
    guards: ['src/server/limits/', 'src/platform/', 'test/hostile/overload/', ...HARNESS],
    steps: program(`${HOSTILE}/overload/main.js`),
  },
  {
    name: 'soak',
    minutes: 8,
    isScaled: true,
    guards: ['src/server/', 'src/database/', 'src/platform/', 'test/hostile/soak/', ...HARNESS],
    steps: ({ seed, minutes, folder }) => [
      [
        ...[
          'node',
          `${HOSTILE}/soak/main.js`,
          '--minutes',
          minutes.toFixed(2),
          '--seed',
          `${seed}`,
        ],
        ...['--restart-minutes', Math.max(2.5, minutes / 4).toFixed(2), '--to', folder],
      ],
    ],
  },
  {
    name: 'flood',
    minutes: 1,
    tests: ['server/hostile/flood'],
    guards: ['src/server/limits/', 'src/server/transport/', 'test/server/hostile/'],
    steps: testsOf('server/hostile/flood'),
  },
  {
    name: 'kernels',
    minutes: 30,
    needs: ['compiler'],
    tests: ['kernels/kernels'],
    guards: [...inputsOf('kernels'), 'scripts/check-kernels.sh', 'test/kernels/'],
    steps: () => [
      ['bash', 'scripts/check-kernels.sh'],
      ['node', 'scripts/test.mjs', '--nightly', 'kernels/kernels'],
    ],
  },
  {
    name: 'gpu-architectures',
    minutes: 6,
    needs: ['nvcc'],
    guards: inputsOf('gpu'),
    steps: () => [
      ['node', 'scripts/build-kernels.mjs', 'cuda'],
      ['node', 'scripts/gpu/archive.mjs', '--programs'],
    ],
  },
  {
    name: 'console',
    minutes: 6,
    needs: ['chromium'],
    tests: ['console/'],
    guards: ['packages/console/', 'src/server/pages/'],
    steps: testsOf('console/'),
  },
  {
    name: 'packages',
    minutes: 5,
    tests: ['test/packages/'],
    guards: ['packages/', 'scripts/packages/', 'test/packages/', 'openapi.json', ...BUILD],
    steps: () => [
      ['node', 'scripts/test.mjs', '--nightly', 'test/packages/'],
      ['node', 'scripts/packages/publish.mjs', '--dry-run'],
    ],
  },
  {
    name: 'generators',
    minutes: 4,
    tests: ['generators/'],
    guards: ['openapi.json', 'test/generators/'],
    steps: () => [
      ['mkdir', '-p', 'build/generators'],
      [
        'cp',
        'test/generators/package.json',
        'test/generators/package-lock.json',
        'build/generators/',
      ],
      ['npm', 'ci', '--prefix', 'build/generators', '--ignore-scripts', '--no-audit', '--no-fund'],
      ['node', 'scripts/test.mjs', '--nightly', 'test/generators/'],
    ],
  },
  {
    name: 'bundle-and-images',
    minutes: 10,
    guards: BUILD,
    // Runs twice, because files left by one build must not change the next.
    steps: () => [
      ['node', 'scripts/bundle/test.mjs'],
      ['node', 'scripts/container/replay.mjs'],
      ['node', 'scripts/bundle/test.mjs'],
      ['node', 'scripts/container/replay.mjs'],
    ],
  },
  {
    name: 'benches',
    minutes: 30,
    guards: ['bench/'],
    steps: ({ folder }) => [
      ['node', 'scripts/build-kernels.mjs', 'bench', '--if-possible'],
      ...BENCHES.map((name) => ['node', 'dist/bench/main.js', '--full', '--out', folder, name]),
      ['node', 'scripts/nightly/compare-benches.mjs', folder],
    ],
  },
];

/** Test files that belong to a specific part. */
const OWN_TESTS = LISTED.flatMap(({ tests = [] }) => tests);

export const PARTS = LISTED.map((part) => ({
  isScaled: false,
  needs: [],
  busyLoops: 0,
  ...part,
  steps: (context) => part.steps({ ...context, testsOfOthers: OWN_TESTS }),
}));

/** The parts that guard any of the paths. A guard is the beginning of a path. */
export function partsGuarding(paths) {
  return PARTS.filter(({ guards }) =>
    guards.some((guard) => paths.some((path) => path.startsWith(guard))),
  );
}
