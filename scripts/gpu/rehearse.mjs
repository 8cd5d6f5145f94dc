// Runs the calls of a first session on a GPU to the end on an emulated one, with small sizes, so that
// no minute on a device is lost to a mistake in a script. Fails unless every step has passed, or was
// skipped for a tool that is missing here, and every call has written its reports.
//
//   node scripts/gpu/rehearse.mjs [CALL…]    such as d-engine; all calls by default. GPU_WHEELS and
//                                            GPU_BINDING: call F installs TensorFlow from them

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const kernels = join(root, 'build', 'kernels');
const installer = join(root, 'scripts', 'install-tensorflow.mjs');
/** The names that the calls use, and the emulated programs. */
const PROGRAMS = {
  'platform-test': 'emulation-test',
  'cuda-test': 'cuda-test-emulated',
  'cuda-bench': 'cuda-bench-emulated',
  'term-vectors': 'term-vectors',
};
/** Steps whose tools a machine without a GPU need not have. */
const MAY_BE_SKIPPED = /^(torch-|tensorflow-|memcheck|racecheck|synccheck|ncu-)/;
const CALLS = {
  'a-first-look': [
    'versions',
    'platform-test',
    'peaks',
    'scan-200k',
    'scan-1m',
    'scan-1m-ring',
    'torch-1m',
    'cuda-test',
  ],
  'b-ten-million': ['scan-10m', 'torch-10m'],
  'c-sanitizers': ['cuda-test-large', 'memcheck', 'racecheck', 'synccheck', 'ncu-1', 'ncu-4096'],
  'd-engine': ['doctor', 'doctor-table', 'selftest', 'rest'],
  'e-data': [
    'wordnet-vectors',
    'scan-wordnet',
    'scan-isotropic-1536',
    'scan-isotropic-1024',
    'scan-isotropic-3072',
    'torch-wordnet',
    'torch-isotropic-1536',
    'torch-isotropic-1024',
    'torch-isotropic-3072',
    'scan-isotropic-10m',
  ],
  'f-tensorflow': ['tensorflow-install', 'tensorflow-selftest', 'engines'],
};
/** Cases that a table must have. */
const CASES = { 'a-first-look': 16, 'b-ten-million': 2, 'e-data': 9, 'f-tensorflow': 2 };

const wanted = process.argv.slice(2);
for (const call of wanted) check(call in CALLS, `expected one of ${Object.keys(CALLS)}`);
const targets = [...Object.values(PROGRAMS), 'cuda-emulated'];
run(process.execPath, [join(root, 'scripts', 'build-kernels.mjs'), ...targets]);
const scratch = mkdtempSync(join(tmpdir(), 'sagitta-rehearsal-'));
try {
  for (const call of wanted.length === 0 ? Object.keys(CALLS) : wanted) rehearse(call);
} finally {
  rmSync(scratch, { recursive: true });
}

function rehearse(call) {
  const env = {
    ...process.env,
    GPU_SMALL: '1',
    GPU_OUT: join(scratch, 'results'),
    GPU_PROGRAMS: linkPrograms(),
    // The least of its tests: the calls are rehearsed here, and CI runs the tests themselves before.
    GPU_TEST_OPTIONS: '--process',
    GPU_VARIANT: 'cpu',
    GPU_BUNDLE: /^(d-engine|f-tensorflow)$/.test(call) ? makeBundle() : '',
    // The emulation is slow, and the machine may be busy: only hangs are to be ended.
    GPU_PATIENCE: '20',
    SAGITTA_TEST_EMULATED_PATIENCE: '20',
    GPU_BUDGET: '3600',
  };
  const { status } = spawnSync('bash', [join(root, 'scripts', 'gpu', `${call}.sh`)], {
    env,
    stdio: 'inherit',
  });
  check(status === 0, `${call} exited with ${status}`);
  const folder = join(scratch, 'results', call);
  const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'));
  const names = report.steps.map(({ step }) => step);
  check(names.join() === CALLS[call].join(), `${call} ran ${names}`);
  for (const { step, outcome, message } of report.steps) {
    const isFine = outcome === 'passed' || (outcome === 'skipped' && MAY_BE_SKIPPED.test(step));
    check(isFine, `${call}/${step}: ${outcome}, ${message}`);
  }
  const table = readFileSync(join(folder, 'report.md'), 'utf8');
  const rows = table.split('\n').filter((line) => /^\| (sagitta|torch|cuda|tensorflow)/.test(line));
  check(rows.length >= (CASES[call] ?? 0), `${call}: the table has ${rows.length} cases`);
  const hasTensorflow = report.steps.some(
    ({ step, outcome }) => step === 'tensorflow-selftest' && outcome === 'passed',
  );
  const isCompared = rows.some((line) => line.startsWith('| tensorflow |'));
  check(hasTensorflow === isCompared, `${call}: the table lacks an engine`);
}

function linkPrograms() {
  const folder = join(scratch, 'programs');
  if (existsSync(folder)) return folder;
  mkdirSync(folder);
  for (const [name, program] of Object.entries(PROGRAMS)) {
    symlinkSync(join(kernels, program), join(folder, name));
  }
  return folder;
}

/**
 * What calls D and F use of a bundle, with the emulated addon in the place of the other, and TensorFlow for
 * the CPU if it is installed.
 */
function makeBundle() {
  const folder = join(scratch, 'bundle');
  if (existsSync(folder)) return folder;
  mkdirSync(join(folder, 'build', 'kernels'), { recursive: true });
  mkdirSync(join(folder, 'bin'));
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const [name, from] of [
    ['sagitta.node', 'sagitta.node'],
    ['sagitta-files.node', 'sagitta-files.node'],
    ['sagitta-cuda.node', 'sagitta-cuda-emulated.node'],
  ]) {
    const path = join(kernels, from);
    if (existsSync(path)) cpSync(path, join(folder, 'build', 'kernels', name));
  }
  mkdirSync(join(folder, 'runtime'));
  symlinkSync(process.execPath, join(folder, 'runtime', 'node'));
  mkdirSync(join(folder, 'scripts'));
  cpSync(join(root, 'scripts', 'sagitta.cjs'), join(folder, 'scripts', 'sagitta.cjs'));
  cpSync(installer, join(folder, 'scripts', basename(installer)));
  // With wheels, the call installs TensorFlow itself.
  const tensorflow = join(root, 'build', 'tensorflow');
  if (existsSync(tensorflow) && !process.env.GPU_WHEELS) {
    symlinkSync(tensorflow, join(folder, 'build', 'tensorflow'));
  }
  const launcher = join(folder, 'bin', 'sagitta');
  writeFileSync(
    launcher,
    `#!/bin/sh\nexec "${process.execPath}" "${folder}/scripts/sagitta.cjs" "$@"\n`,
  );
  chmodSync(launcher, 0o755);
  return folder;
}

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  check(status === 0, `${command} ${args.join(' ')} exited with ${status}`);
}

function check(holds, message) {
  if (!holds) throw new Error(`rehearsal: ${message}`);
}
