// The GPU bench without a GPU: how it renders recorded lines, and its behaviour without a device, without
// torch, and when it is stopped.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  CASE_NUMBERS,
  DEVICE_NUMBERS,
  KERNEL_NUMBERS,
  PRECISIONS,
  parseKernelLine,
  parseTorchLine,
  TORCH_DEVICE_NUMBERS,
  TORCH_NUMBERS,
} from '../../bench/cuda/lines.js';
import { findShortage, nameOf, planSteps } from '../../bench/cuda/plan.js';
import { parseDriver } from '../../bench/cuda/programs.js';
import { type Findings, renderReport, type Section } from '../../bench/cuda/report.js';
import { WrongResult } from '../../bench/engine/check.js';
import { makeFolder } from '../cli/command.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const BENCH = fileURLToPath(new URL('../../bench/cuda.js', import.meta.url));
const SCRIPT = join(ROOT, 'bench', 'cuda', 'torch_topk.py');

const DEVICE =
  '{"device":"NVIDIA H200","kernels":"wgmma","compute_capability":90,"driver":13000,' +
  '"runtime":13000,"copy_gb_per_s":4000.0,"mma_int8_top_per_s":1000.0,"wgmma_int8_top_per_s":1600.0}';
const TORCH_DEVICE = '{"torch": "2.9.0", "cuda": "13.0", "bf16_flop_per_s": 768000000000000}';

interface Drawn {
  readonly queries: number;
  readonly filter?: number;
  readonly ms: number;
  readonly undecided?: number;
  readonly repeated?: number;
  readonly exhaustive?: number;
}

/** As bench.cpp prints a case of 1 000 000 × 768 on the device above. */
function kernelLine(drawn: Drawn): string {
  const { queries, filter = 100, ms, undecided = 0, repeated = 0, exhaustive = 0 } = drawn;
  const copy = (((1e6 * 768) / ms) * 1e3) / 4e12;
  const int8 = (2e6 * 768 * queries * 1e3) / ms / 1.6e15;
  return (
    `{"data":"clustered","seed":1,"rows":1000000,"dimension":768,"queries":${queries},"k":10,` +
    `"filter_percent":${filter},` +
    `"device_ms_p50":${ms.toFixed(4)},"wall_ms_p50":${ms.toFixed(4)},"scan_ms":0.2000,` +
    '"rescore_ms":0.0100,"select_ms":0.0100,"upload_ms":0.0100,"prepare_ms":0.0100,' +
    `"finish_ms":0.0100,"queries_per_s":${((queries / ms) * 1e3).toFixed(1)},` +
    `"share_of_copy":${copy.toFixed(4)},"share_of_int8":${int8.toFixed(4)},` +
    `"rescored_per_query":73.2,"repeated":${repeated},"exhaustive":${exhaustive},"undecided":${undecided},"exact":true}`
  );
}

/** As torch_topk.py prints one. */
function torchLine(precision: string, { queries, filter = 100, ms }: Drawn): string {
  return (
    `{"data": "clustered", "rows": 1000000, "dimension": 768, "queries": ${queries}, "k": 10, ` +
    `"filter_percent": ${filter.toFixed(1)}, "precision": "${precision}", "device_ms_p50": ${ms}, "wall_ms_p50": ` +
    `${ms}, "chunks": 2, "recall": ${precision === 'bf16' ? 0.875 : null}}`
  );
}

const KERNELS = [
  kernelLine({ queries: 1, ms: 0.24 }),
  kernelLine({ queries: 16, ms: 0.384, undecided: 2, repeated: 5, exhaustive: 3 }),
  kernelLine({ queries: 4096, ms: 16 }),
  kernelLine({ queries: 128, filter: 10, ms: 0.5 }),
];
const TORCH = [
  torchLine('bf16', { queries: 1, ms: 0.48 }),
  torchLine('float32', { queries: 1, ms: 0.96 }),
  torchLine('bf16', { queries: 4096, ms: 12 }),
  torchLine('bf16', { queries: 128, filter: 10, ms: 2 }),
  torchLine('float32', { queries: 128, filter: 10, ms: 4 }),
];

test('the parsers match the lines that the programs print', () => {
  const cpp = readFileSync(join(ROOT, 'kernels/cuda/bench/bench.cpp'), 'utf8');
  const printed = new Set([...cpp.matchAll(/\\"(\w+)\\":/g)].map(([, name]) => name));
  for (const name of ['device', 'kernels', 'data', 'exact', ...DEVICE_NUMBERS, ...KERNEL_NUMBERS]) {
    assert.ok(printed.has(name), `bench.cpp prints no ${name}`);
  }
  const python = readFileSync(SCRIPT, 'utf8');
  const names = ['torch', 'cuda', 'data', 'precision', 'recall', 'failure', ...PRECISIONS];
  for (const name of [...names, ...TORCH_DEVICE_NUMBERS, ...TORCH_NUMBERS]) {
    assert.match(python, new RegExp(`"${name}":|\\b${name}=`), `torch_topk.py prints no ${name}`);
  }
  for (const option of [
    'data',
    'seed',
    'rows',
    'dimension',
    'batches',
    'ks',
    'filters',
    'seconds',
  ]) {
    assert.ok(cpp.includes(`"--${option}"`), `bench.cpp takes no --${option}`);
    assert.ok(python.includes(`"--${option}"`), `torch_topk.py takes no --${option}`);
  }
});

test('an invalid line is an error that describes it', () => {
  assert.throws(() => parseKernelLine('Segmentation fault'), /expected a line with a JSON object/);
  const wrong = KERNELS[0]!.replace('"exact":true', '"exact":false');
  assert.throws(() => parseKernelLine(wrong), WrongResult);
  const nameless = KERNELS[0]!.replace('"k":', '"j":');
  assert.throws(() => parseKernelLine(nameless), /expected a number as k, found undefined/);
  assert.throws(
    () => parseTorchLine(TORCH[0]!.replace('bf16', 'fp8')),
    /expected one of bf16, float32 as precision, found "fp8"/,
  );
});

describe('the report', () => {
  const whole = renderReport(findings({ withTorch: true }));
  const rowOf = (report: string, name: string) =>
    report
      .split('\n')
      .find((line) => line.startsWith(`| ${name} |`))
      ?.split('|')
      .slice(2, -1)
      .map((cell) => cell.trim());

  it('compares a case with the peaks and with torch, and shows which goals are met', () => {
    assert.deepEqual(rowOf(whole, 'batch of 1, k = 10'), [
      ...['0.240', '0.240', '4 167', '80 %', '0 %', '1 %', '73', '0'],
      ...['2.00 × (0.480)', '4.00 × (0.960)', 'of copy met; torch met'],
    ]);
    // 256 000 queries/s of 500 000 that 768 TFLOP/s would give; slower than torch, and said so.
    assert.deepEqual(rowOf(whole, 'batch of 4 096, k = 10'), [
      ...['16.0', '16.0', '256 000', '1 %', '25 %', '51 %', '73', '0'],
      ...['0.75 × (12.0)', '—', 'of bf16 met; torch missed: 0.75 ×'],
    ]);
    const filtered = rowOf(whole, 'batch of 128, k = 10, 10 % pass')!;
    assert.deepEqual(filtered.slice(3, 6), ['—', '—', '—']);
    assert.equal(filtered.at(-1), 'torch met');
  });

  it('shows undecided queries and missed goals', () => {
    assert.equal(
      rowOf(whole, 'batch of 16, k = 10')!.at(-1),
      'of copy missed: 50 %; 5 queries scanned again; all rows of 3 queries scored; ' +
        'undecided queries are left to the CPU, not timed',
    );
    assert.match(whole, /70 % of the copy bandwidth \| 1 of 2 cases \| 50 %: .* batch of 16/);
    assert.match(whole, /with a filter: 3 × as fast as torch.* \| 1 of 1 cases \| 8\.00 ×/);
  });

  it('shows the device, its peaks and the recall of torch', () => {
    assert.match(
      whole,
      /^NVIDIA H200, 140 GiB, 700\.00 W, compute capability 9\.0; wgmma kernels/m,
    );
    assert.match(whole, /driver 580\.65\.06, CUDA runtime 13\.0, torch 2\.9\.0 \(CUDA 13\.0\)/);
    assert.match(whole, /copy 4 000 .* by wgmma 1 600 .* bf16 by torch \(8192³\) 768/);
    assert.match(whole, /over 16 queries per case, its bf16 finds 0\.875 \(median\)/);
  });

  it('shows the overhead of the engine over the kernels', () => {
    const row = rowOf(whole, '1 000 000 × 768, batch of 1, k = 10');
    assert.deepEqual(row, ['0.540', '0.800', '1 800', '0.240', '0.300', '90', '0']);
  });

  it('omits the columns of torch without torch and uses the int8 rate instead', () => {
    const bare = renderReport(findings({ withTorch: false }));
    assert.equal(bare.includes('to torch'), false);
    assert.deepEqual(rowOf(bare, 'batch of 4 096, k = 10'), [
      ...['16.0', '16.0', '256 000', '1 %', '25 %', '73', '0', 'of bf16 met'],
    ]);
    assert.match(bare, /faster than torch, in both precisions \| not measured \| — \|/);
    assert.match(bare, /estimated as twice the share of the int8 rate/);
  });

  it('shows the progress of an unfinished run', () => {
    const part = renderReport({ ...findings({ withTorch: true }), isFinished: false });
    assert.match(part, /\*\*Not finished: 5 of 9 cases\.\*\*/);
    assert.equal(whole.includes('Not finished'), false);
  });
});

test('the full plan starts with the goals and skips steps that exceed the memory', () => {
  const steps = planSteps(true);
  assert.equal(nameOf(steps[0]!), '1000000 × 768, k = 10, no filter');
  const sizes = new Set(steps.map(({ rowCount, dimension }) => `${rowCount} × ${dimension}`));
  const deep = ['1000000 × 1536', '1000000 × 1024', '1000000 × 3072'];
  const expected = ['1000000 × 768', '113000 × 768', ...deep, '10000000 × 768', '1000000 × 128'];
  assert.deepEqual([...sizes], expected);
  const names = steps.map(nameOf).filter((name) => /isotropic|wordnet/.test(name));
  assert.deepEqual(
    names,
    ['113000 × 768, wordnet', ...deep.map((size) => `${size}, isotropic`)].map(
      (start) => `${start}, k = 10 and 100, no filter`,
    ),
  );
  const largest = steps.find(({ rowCount }) => rowCount === 10_000_000)!;
  const roomy = { hostBytes: 128e9, deviceBytes: 140e9 };
  assert.equal(findShortage(largest, roomy, null), null);
  assert.match(
    findShortage(largest, { ...roomy, hostBytes: 24e9 }, null)!,
    /^needs 39\.0 GB of host memory, found 24\.0 GB free$/,
  );
  assert.match(findShortage(largest, { ...roomy, deviceBytes: 24e9 }, null)!, /of device memory/);
  assert.match(findShortage(largest, { ...roomy, deviceBytes: 45e9 }, 'torch')!, /^needs 49\.1 GB/);
  assert.equal(findShortage(largest, { ...roomy, deviceBytes: null }, null), null);
});

test('parses the output of nvidia-smi, and ignores incomplete lines', () => {
  assert.equal(parseDriver('580.65.06, 143771, 143250, 700.00\n')?.freeBytes, 143250 * 2 ** 20);
  assert.equal(parseDriver('580.65.06, [N/A], [N/A], [N/A]\n'), null);
  assert.equal(parseDriver('No devices were found\n'), null);
});

describe('a run', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  before(async () => {
    folder = await makeFolder();
  });
  after(() => folder.remove());

  /** A program that stands in for a real one: prints lines, waits, and exits with the code. */
  async function pretend(name: string, lines: readonly string[], code = 0, waitMs = 0) {
    const path = join(folder.path, name);
    const body =
      `if (!process.argv.includes('peaks') || ${lines.length} < 2) ` +
      `console.log(${JSON.stringify(lines.join('\n'))}); else console.log(${JSON.stringify(lines[0])});` +
      `console.error('cuda-bench: skipped, no device: none found');` +
      `setTimeout(() => process.exit(${code}), process.argv.includes('peaks') ? 0 : ${waitMs});`;
    await writeFile(path, `#!${process.execPath}\n${body}\n`);
    await chmod(path, 0o755);
    return path;
  }

  const start = (python: string, ...args: string[]) =>
    spawn(process.execPath, [BENCH, ...args], {
      env: { ...process.env, SAGITTA_BENCH_PYTHON: python },
      stdio: ['ignore', 'pipe', 'inherit'],
    });

  async function finish(child: ReturnType<typeof start>) {
    const ended = new Promise<unknown>((resolve) => child.on('close', resolve));
    let stdout = '';
    for await (const chunk of child.stdout!) stdout += chunk;
    return { code: await ended, stdout };
  }

  it('is skipped with exit code 0 without a device or program', async () => {
    const absent = await pretend('absent', [], 77);
    for (const size of [[], ['--full']]) {
      const { code, stdout } = await finish(start('', ...size, '--program', absent));
      assert.equal(code, 0);
      assert.equal(stdout.trim(), 'skipped: no device (none found)');
    }
    const missing = await finish(start('', '--program', join(folder.path, 'missing')));
    assert.equal(missing.code, 0);
    assert.match(
      missing.stdout,
      /^skipped: .*missing is not built[^`]*`node scripts\/build-kernels\.mjs cuda cuda-bench`/,
    );
  });

  it('reports the figures of the kernels and of torch', async () => {
    const program = await pretend('kernels', [DEVICE, ...KERNELS]);
    const python = await pretend('python', [TORCH_DEVICE, ...TORCH]);
    const out = join(folder.path, 'cuda.md');
    const { code, stdout } = await finish(
      start(python, '--only', 'k = 10', '--program', program, '--out', out),
    );
    assert.equal(code, 0);
    assert.equal(await readFile(out, 'utf8'), stdout.replace(/\n$/, ''));
    assert.match(stdout, /\| batch of 1, k = 10 \| .* 2\.00 × \(0\.480\)/);
  });

  it('continues without torch and reports why', async () => {
    const program = await pretend('kernels', [DEVICE, ...KERNELS]);
    const python = join(folder.path, 'no-python');
    const { code, stdout } = await finish(start(python, '--only', 'k = 10', '--program', program));
    assert.equal(code, 0);
    assert.match(stdout, /\| batch of 1, k = 10 \|/);
    assert.match(stdout, /^- skipped: torch, .*no-python: spawn .* ENOENT$/m);
  });

  it('exits with 1 when a program fails or returns wrong results', async () => {
    const failing = await pretend('failing', [DEVICE, KERNELS[0]!], 1);
    const peaks = `[ "$2" = peaks ] && echo '${DEVICE}' && exit 0`;
    const shell = join(folder.path, 'half');
    await writeFile(shell, `#!/bin/sh\n${peaks}\nexec '${failing}' "$@"\n`);
    await chmod(shell, 0o755);
    const args = ['--only', 'k = 10', '--no-torch', '--program', shell];
    const { code, stdout } = await finish(start('', ...args));
    assert.equal(code, 1);
    assert.match(stdout, /\| batch of 1, k = 10 \|/);
    assert.match(stdout, /^- failed: 20000 × 64, .*: exited with 1: /m);
  });

  it('leaves a complete report of its results so far when it is stopped', async (context: TestContext) => {
    const program = await pretend('slow', [DEVICE, ...KERNELS], 0, 60_000);
    const out = join(folder.path, 'part.md');
    const child = start('', '--only', 'k = 10', '--program', program, '--out', out);
    context.after(() => child.kill('SIGKILL'));
    let report = '';
    while (!report.includes('10 % pass') && child.exitCode === null) {
      await sleep(50);
      report = await readFile(out, 'utf8').catch(() => '');
    }
    assert.match(report, /\*\*Not finished: 4 of 4 cases\.\*\*/);
    assert.match(report, /\| batch of 1, k = 10 \|/);
    const ended = finish(child);
    child.kill('SIGTERM');
    assert.equal((await ended).code, 143);
  });
});

test('the torch script reports that torch is missing, with its exit code', async (context) => {
  if (spawnSync('python3', ['--version']).status !== 0) {
    context.skip('python3 is not installed');
    return;
  }
  const folder = await makeFolder();
  context.after(() => folder.remove());
  await writeFile(join(folder.path, 'torch.py'), "raise ImportError('none here')\n");
  const { status, stderr } = spawnSync(
    'python3',
    [SCRIPT, '--rows', '10', '--dimension', '4', '--batches', '1'],
    { env: { ...process.env, PYTHONPATH: folder.path }, encoding: 'utf8' },
  );
  assert.equal(status, 77, stderr);
  assert.match(stderr, /torch cannot be imported: none here/);
});

function findings({ withTorch }: { withTorch: boolean }): Findings {
  const device = parseKernelLine(DEVICE);
  const torch = parseTorchLine(TORCH_DEVICE);
  assert.ok(device.kind === 'device' && torch.kind === 'device');
  const section: Section = { device, torch: null, kernels: [], torchCases: [] };
  for (const line of KERNELS.map(parseKernelLine)) {
    if (line.kind === 'case') section.kernels.push(line);
  }
  if (withTorch) section.torch = torch;
  for (const line of withTorch ? TORCH.map(parseTorchLine) : []) {
    if (line.kind === 'case') section.torchCases.push(line);
  }
  const [rows, dimension, queries, k, filter_percent] = [1_000_000, 768, 1, 10, 100];
  const numbers = { rows, dimension, queries, k, filter_percent };
  assert.deepEqual(Object.keys(numbers), [...CASE_NUMBERS]);
  const shape = { data: 'clustered', ...numbers };
  const times = { p50_ms: 0.54, p99_ms: 0.8, queries_per_s: 1800 };
  return {
    isFull: true,
    machine: 'a machine',
    device,
    driver: parseDriver('580.65.06, 143771, 143250, 700.00'),
    sections: [section],
    engine: [
      {
        kind: 'engine',
        engine: 'cuda',
        ...shape,
        ...times,
        rescored_per_query: 90,
        fallback_queries: 0,
      },
    ],
    notes: [],
    plannedCount: 9,
    isFinished: true,
  };
}
