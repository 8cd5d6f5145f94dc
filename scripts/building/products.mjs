// What is built from what: the one description that builds, archives, packages, images and CI take their lists from.

import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TSC = 'node_modules/typescript/bin/tsc';

/** What the npm package and the bundle contain of the repository. The kernels can be compiled where they are installed. */
const DISTRIBUTED = [
  'CHANGELOG.md',
  'LICENSE',
  'NOTICE',
  'README.md',
  'deploy/prometheus/sagitta.rules.yaml',
  'deploy/systemd',
  'docs',
  'examples/data',
  'kernels',
  'openapi.json',
  'package.json',
  'scripts/build-kernels.mjs',
  'scripts/install-tensorflow.mjs',
  'scripts/kernels',
  'scripts/sagitta.cjs',
];

/**
 * The products by name, each after those that it needs. `sources` are files and folders whose contents go into a product,
 * `scripts` those that make it. `output` is a file or folder that exists once it is built. `commands` are words after
 * `node` with which `scripts/build.mjs` builds it; products without commands have programs of their own in `scripts`.
 */
export const PRODUCTS = {
  kernels: {
    sources: ['kernels'],
    scripts: ['scripts/build-kernels.mjs', 'scripts/kernels'],
    output: 'build/kernels',
    commands: [['scripts/build-kernels.mjs', '--if-possible']],
  },
  app: {
    sources: [
      'src',
      'packages/client/src',
      'packages/console/src/icon.svg',
      // The guide.
      'docs',
      'package-lock.json',
    ],
    scripts: ['scripts/building'],
    output: 'dist/app',
    commands: [['scripts/building/program.mjs']],
  },
  console: {
    sources: [
      'packages/console/src',
      'packages/client/src',
      'src/common',
      'src/formats',
      'src/readers',
      'package-lock.json',
    ],
    scripts: ['packages/console/build.mjs', 'scripts/building'],
    output: 'dist/console',
    commands: [['packages/console/build.mjs']],
  },
  client: npmPackage('client', []),
  langchain: npmPackage('langchain', ['client']),
  // One module per source, for tests and benches.
  modules: {
    sources: ['src', 'packages', 'test', 'bench', 'examples'],
    scripts: ['tsconfig.json'],
    output: 'dist/src',
    commands: [[TSC, '-p', 'tsconfig.json']],
  },
  types: {
    sources: ['packages/console'],
    scripts: ['tsconfig.json'],
    commands: [[TSC, '-p', 'packages/console']],
  },
  // The npm package.
  server: {
    needs: ['kernels', 'app', 'console'],
    sources: [...DISTRIBUTED, 'scripts/building/save-code-cache.mjs', 'scripts/install.mjs'],
    scripts: ['scripts/packages'],
    output: 'build/packages',
  },
  bundle: {
    needs: ['kernels', 'app', 'console', 'modules'],
    // install-tensorflow.mjs reads versions from package-lock.json.
    sources: [...DISTRIBUTED, 'package-lock.json', 'scripts/container/healthcheck.mjs'],
    scripts: ['scripts/bundle', 'scripts/packages/size-limits.mjs'],
    output: 'build/bundle',
  },
  image: {
    needs: ['bundle'],
    sources: [],
    scripts: [
      '.dockerignore',
      'Dockerfile',
      'Dockerfile.cuda',
      'scripts/build.mjs',
      'scripts/container',
    ],
  },
  // What scripts/gpu/lease.sh needs on a host with a GPU, beside a bundle.
  gpu: {
    needs: ['kernels'],
    sources: [
      ...['lease.sh', 'report.py', 'torch_topk.py', 'vectors_of_npy.py'].map(
        (name) => `scripts/gpu/${name}`,
      ),
      // NOTICE has the licence of the terms of WordNet.
      ...['LICENSE', 'NOTICE', 'bench/data/wordnet-terms.gz'],
    ],
    scripts: ['scripts/gpu', 'scripts/bundle/archive.mjs', 'scripts/bundle/notes.mjs'],
    output: 'build/gpu',
  },
};

function npmPackage(name, needs) {
  const folder = `packages/${name}`;
  return {
    needs,
    sources: [
      `${folder}/src`,
      `${folder}/package.json`,
      'src/common',
      'package-lock.json',
      'LICENSE',
    ],
    scripts: [`${folder}/tsconfig.json`, 'tsconfig.json', 'scripts/building'],
    output: `${folder}/dist`,
    commands: [['scripts/building/package.mjs', name]],
  };
}

/** A product with all that it needs, directly or not. */
function closureOf(name) {
  const { needs = [] } = PRODUCTS[name];
  return new Set([...needs.flatMap((each) => [...closureOf(each)]), name]);
}

/** The files and folders that make a product and all that it needs. */
export function scriptsOf(name) {
  return unique([...closureOf(name)].flatMap((each) => PRODUCTS[each].scripts));
}

/** The files and folders on which a product depends in any way. */
export function inputsOf(name) {
  return unique([
    ...[...closureOf(name)].flatMap((each) => PRODUCTS[each].sources),
    ...scriptsOf(name),
  ]);
}

function unique(paths) {
  return [...new Set(paths)].sort();
}
