// Runs lease.sh to the end on an emulated GPU, with small sizes, so that no minute on a device is lost to a mistake in
// it: both calls, where every step must pass or be skipped for a tool that is missing here; some steps again; with
// wgmma that fails, where the steps that use it fail and the others go on with mma; and with too little time.
//
//   node scripts/gpu/rehearse.mjs [REHEARSAL…]    such as lease-first; all by default

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const kernels = join(root, 'build', 'kernels');
/** The names on a device, and the emulated programs. */
const PROGRAMS = {
  'platform-test': 'emulation-test',
  'cuda-test': 'cuda-test-emulated',
  'cuda-bench': 'cuda-bench-emulated',
  'term-vectors': 'term-vectors',
};
const FILES = [
  'scripts/gpu/lease.sh',
  'scripts/gpu/report.py',
  'scripts/gpu/torch_topk.py',
  'scripts/gpu/vectors_of_npy.py',
  'bench/data/wordnet-terms.gz',
];
const RESULTS = ['logs.tar.gz', 'ncu.txt', 'report.json', 'report.md'];
/** Steps whose tools a machine without a GPU need not have: torch, numpy, ncu and compute-sanitizer. */
const MAY_BE_SKIPPED = /^(torch|sentence|scan-sentences|memcheck|racecheck|synccheck|ncu-)/;

/**
 * What lease.sh is called with, and what must come of it: the exit code, the steps that do not pass with their outcome,
 * and how many cases the table has at least.
 */
const REHEARSALS = {
  'lease-first': { part: 'first', cases: 9 },
  'lease-second': { part: 'second', cases: 20 },
  'lease-again': { part: 'again', steps: ['scan', 'rest'], cases: 3 },
  'wgmma-fails': {
    part: 'again',
    steps: ['open-mma', 'open-wgmma', 'test-mma', 'test-wgmma', 'scan', 'scan-ring', 'doctor'],
    env: { SAGITTA_TEST_EMULATED_FAULT: 'lost-at-wgmma' },
    exit: 1,
    outcomes: { 'open-wgmma': 'failed', 'test-wgmma': 'failed', 'scan-ring': 'failed' },
    cases: 3,
    kernels: 'mma',
  },
  'out-of-time': {
    part: 'again',
    // The driver hangs in the first step, until its time is over.
    steps: ['open-mma', 'open-wgmma', 'scan'],
    env: {
      SAGITTA_TEST_EMULATED_FAULT: 'hang',
      SAGITTA_TEST_EMULATED_FAULT_AT_CALL: '5',
      GPU_BUDGET: '8',
      GPU_PATIENCE: '1',
    },
    exit: 1,
    outcomes: { 'open-mma': 'timed out', 'open-wgmma': 'out of time', scan: 'out of time' },
    cases: 0,
  },
};

const wanted = process.argv.slice(2);
for (const name of wanted) {
  check(name in REHEARSALS, `${name} is not one of ${Object.keys(REHEARSALS)}`);
}
const targets = [...Object.values(PROGRAMS), 'cuda-emulated'];
run(process.execPath, [join(root, 'scripts', 'build-kernels.mjs'), ...targets]);
const scratch = mkdtempSync(join(tmpdir(), 'sagitta-rehearsal-'));
try {
  const folder = makePrograms();
  const bundle = makeBundle();
  for (const name of wanted.length === 0 ? Object.keys(REHEARSALS) : wanted) {
    rehearse(name, { folder, bundle });
  }
} finally {
  rmSync(scratch, { recursive: true });
}

function rehearse(name, { folder, bundle }) {
  const { part, steps, env, exit = 0, outcomes = {}, cases, kernels: used } = REHEARSALS[name];
  console.log(`── ${name}`);
  const started = performance.now();
  const out = join(scratch, name);
  const { status } = spawnSync('bash', [join(folder, 'lease.sh'), part], {
    env: {
      ...process.env,
      OUT: out,
      GPU_SMALL: '1',
      GPU_BUNDLE: bundle,
      // The emulation is slow, and the machine may be busy: only hangs are to be ended.
      GPU_PATIENCE: '20',
      SAGITTA_TEST_EMULATED_PATIENCE: '20',
      GPU_BUDGET: '3600',
      ...(steps === undefined ? {} : { GPU_STEPS: steps.join(' ') }),
      ...env,
    },
    stdio: 'inherit',
  });
  check(status === exit, `${name} exited with ${status}, expected ${exit}`);
  const found = readdirSync(out).sort();
  check(found.join() === RESULTS.join(), `${name} wrote ${found}`);
  const listed = spawnSync('tar', ['-tzf', join(out, 'logs.tar.gz')], { encoding: 'utf8' });
  check(listed.stdout.includes('./steps.tsv'), `${name}: the logs lack the list of steps`);
  checkReport(name, JSON.parse(readFileSync(join(out, 'report.json'), 'utf8')), {
    outcomes,
    steps,
  });
  const lines = readFileSync(join(out, 'report.md'), 'utf8').split('\n');
  const rows = lines.filter((line) => /^\| scan\S* \| sagitta/.test(line));
  check(rows.length >= cases, `${name}: the table has ${rows.length} cases`);
  const isUsed = (line) => line.startsWith('| scan-ring ') || line.includes(`(${used})`);
  check(used === undefined || rows.every(isUsed), `${name}: not all cases are of ${used}`);
  console.log(`── ${name}: as expected, ${Math.round((performance.now() - started) / 1000)} s`);
}

function checkReport(name, report, { outcomes, steps }) {
  const unreadable = report.lines.find((line) => 'unreadable' in line);
  check(unreadable === undefined, `${name}: ${unreadable?.step} wrote ${unreadable?.unreadable}`);
  check(report.not_run.length === 0, `${name} did not run ${report.not_run}`);
  const names = report.steps.map(({ step }) => step);
  for (const step of steps ?? []) check(names.includes(step), `${name} did not run ${step}`);
  for (const { step, outcome, message } of report.steps) {
    const expected = outcomes[step] ?? 'passed';
    const isFine = outcome === expected || (outcome === 'skipped' && MAY_BE_SKIPPED.test(step));
    check(isFine, `${name}/${step}: ${outcome}, expected ${expected}: ${message}`);
  }
}

/** The folder of the archive, with the emulated programs. */
function makePrograms() {
  const folder = join(scratch, 'programs');
  mkdirSync(folder);
  for (const [name, program] of Object.entries(PROGRAMS)) {
    symlinkSync(join(kernels, program), join(folder, name));
  }
  for (const path of FILES) cpSync(join(root, path), join(folder, basename(path)));
  writeFileSync(join(folder, 'sentences.npy'), npyOf(200, 16));
  return folder;
}

/** Float16 numbers around 1 in the format of numpy. */
function npyOf(rows, columns) {
  const text = `{'descr': '<f2', 'fortran_order': False, 'shape': (${rows}, ${columns}), }`;
  const header = Buffer.alloc(128, ' ');
  header.write(`\x93NUMPY\x01\0\x76\0${text}`, 'latin1');
  header.write('\n', 127);
  const values = Uint16Array.from(
    { length: rows * columns },
    (_, i) => 0x3c00 + ((i * 7919) % 1024),
  );
  return Buffer.concat([header, Buffer.from(values.buffer)]);
}

/** What lease.sh uses of a bundle, with the emulated addon in the place of the other. */
function makeBundle() {
  const folder = join(scratch, 'bundle');
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
    if (statSync(path, { throwIfNoEntry: false })) {
      cpSync(path, join(folder, 'build', 'kernels', name));
    }
  }
  mkdirSync(join(folder, 'scripts'));
  cpSync(join(root, 'scripts', 'sagitta.cjs'), join(folder, 'scripts', 'sagitta.cjs'));
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
