// Builds what a first session on a GPU needs, for a host without network, Node or compiler:
//
//   node scripts/gpu/archive.mjs                 build/gpu/sagitta-gpu-programs.tar.gz: the programs,
//                                                stripped, torch_topk.py, the terms of WordNet and the
//                                                scripts of the calls; and the bundle, with the engine and
//                                                Node
//   … --programs                                 only the programs
//   … --tensorflow                               only build/gpu/sagitta-tensorflow-binding.tar.gz: what
//                                                build/tensorflow loads, without TensorFlow's libraries
//   … --emulated                                 the programs on an emulated GPU, for tests
//   … --arch 90a                                 only for this architecture; may be repeated. By default the
//                                                programs are for all, as `build-kernels.mjs cuda` compiles
//                                                them, and the bundle, to be small, for 90a
//
// Fails when an archive is larger than what is carried there: 20 MB and 50 MB.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { writeArchive } from '../bundle/archive.mjs';
import { requireSize } from '../packages/size-limits.mjs';

const PROGRAMS_BYTES_MAX = 20_000_000;
const BUNDLE_BYTES_MAX = 50_000_000;
/** As in bundles: a timestamp that all formats support. */
const TIMESTAMP_SECONDS = 315_532_800;
/** The names of the programs on the host, and of the targets that build them. */
const PROGRAMS = ['platform-test', 'cuda-test', 'cuda-bench', 'term-vectors'];
const EMULATED = ['emulation-test', 'cuda-test-emulated', 'cuda-bench-emulated', 'term-vectors'];
/** Copied as they are, beside the scripts; NOTICE has the licence of the terms. */
const FILES = ['bench/cuda/torch_topk.py', 'bench/data/wordnet-terms.gz', 'LICENSE', 'NOTICE'];

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values: options } = parseArgs({
  options: {
    programs: { type: 'boolean', default: false },
    tensorflow: { type: 'boolean', default: false },
    emulated: { type: 'boolean', default: false },
    arch: { type: 'string', multiple: true },
    out: { type: 'string', default: join(root, 'build', 'gpu') },
  },
});

try {
  if (options.tensorflow) {
    await writeBinding();
  } else {
    await writePrograms();
    if (!options.programs && !options.emulated) writeBundle();
  }
} catch (error) {
  console.error(`gpu archive: ${error.message}`);
  process.exitCode = 1;
}

async function writePrograms() {
  const targets = options.emulated ? EMULATED : PROGRAMS;
  const architectures = options.emulated ? [] : (options.arch ?? []);
  buildKernels(targets, architectures);
  const tree = mkdtempSync(join(mkdirOf(options.out), 'tree-'));
  try {
    for (const [i, name] of PROGRAMS.entries()) {
      copyFileSync(join(root, 'build', 'kernels', targets[i]), join(tree, name));
      chmodSync(join(tree, name), 0o755);
    }
    run(
      'strip',
      PROGRAMS.map((name) => join(tree, name)),
    );
    const scripts = readdirSync(join(root, 'scripts', 'gpu')).filter((name) =>
      /\.(sh|awk)$/.test(name),
    );
    for (const name of scripts) copyFileSync(join(root, 'scripts', 'gpu', name), join(tree, name));
    for (const path of FILES) copyFileSync(join(root, path), join(tree, basename(path)));
    const file = join(options.out, 'sagitta-gpu-programs.tar.gz');
    await writeArchive(tree, { file, top: 'sagitta-gpu-programs', seconds: TIMESTAMP_SECONDS });
    // Emulated programs carry the sanitizers.
    requireSize(file, options.emulated ? Number.POSITIVE_INFINITY : PROGRAMS_BYTES_MAX);
  } finally {
    rmSync(tree, { recursive: true });
  }
}

/** The files of build/tensorflow that Node loads: a twentieth of its packages, and the compiled binding. */
async function writeBinding() {
  const installed = join(root, 'build', 'tensorflow');
  if (!existsSync(join(installed, 'node_modules'))) {
    throw new Error('build/tensorflow is missing: run `node scripts/install-tensorflow.mjs`');
  }
  const tree = mkdtempSync(join(mkdirOf(options.out), 'tree-'));
  try {
    for (const path of loadedFiles(installed)) {
      mkdirSync(dirname(join(tree, path)), { recursive: true });
      copyFileSync(join(installed, path), join(tree, path));
    }
    const file = join(options.out, 'sagitta-tensorflow-binding.tar.gz');
    const top = 'sagitta-tensorflow-binding';
    await writeArchive(tree, { file, top, seconds: TIMESTAMP_SECONDS });
    requireSize(file, PROGRAMS_BYTES_MAX);
  } finally {
    rmSync(tree, { recursive: true });
  }
}

/** Paths relative to `installed`. */
function loadedFiles(installed) {
  const script = `
    require('node:util').isNullOrUndefined ??= (value) => value == null;
    const tf = require('@tensorflow/tfjs-node-gpu');
    tf.matMul(tf.fill([1, 8], 2), tf.fill([8, 1], 3)).dataSync();
    console.log(JSON.stringify(Object.keys(require.cache)));`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', script], {
    cwd: installed,
    encoding: 'utf8',
    env: { ...process.env, TF_CPP_MIN_LOG_LEVEL: '3' },
  });
  if (status !== 0) throw new Error(`build/tensorflow does not work: ${stderr.trim()}`);
  const loaded = JSON.parse(stdout.trim().split('\n').at(-1)).map((path) =>
    relative(installed, path),
  );
  // Node reads the manifests of the packages to find their files.
  const manifests = readdirSync(join(installed, 'node_modules'), { recursive: true })
    .filter((path) => /(^|\/)package\.json$/.test(path))
    .map((path) => join('node_modules', path));
  return [...new Set(['package.json', ...loaded, ...manifests])];
}

function mkdirOf(folder) {
  mkdirSync(folder, { recursive: true });
  return folder;
}

function writeBundle() {
  buildKernels(['cuda'], options.arch ?? ['90a']);
  run('npm', ['run', '--silent', 'build']);
  run(process.execPath, ['scripts/bundle/bundle.mjs', '--out', options.out]);
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const name = `sagitta-${version}-linux-${process.arch}.tar.gz`;
  requireSize(join(options.out, name), BUNDLE_BYTES_MAX);
}

function buildKernels(targets, architectures) {
  const words = architectures.flatMap((name) => ['--arch', name]);
  run(process.execPath, ['scripts/build-kernels.mjs', ...targets, ...words]);
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} exited with ${status}`);
}
