// The GPU kernels: alone, compared with torch where it is installed, and through the engine. Results are
// checked before they are timed. Without a device the bench is skipped with exit code 0.
//
//   node dist/bench/cuda.js                   smoke parameters: seconds, only checks the bench
//   node dist/bench/cuda.js --full            the parameters of docs/performance.md
//   --only TEXT         only steps whose name contains TEXT, such as '1000000 × 768'
//   --no-torch          without torch; SAGITTA_BENCH_PYTHON names a Python with torch (default: python3)
//   --program FILE      the stand-alone bench (default: build/kernels/cuda-bench)
//   --out FILE          also writes the tables as Markdown, updated after every case

import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { type EngineLine, runEngineStep } from './cuda/engine-cases.js';
import { type DeviceLine, parseKernelLine, parseTorchLine } from './cuda/lines.js';
import {
  countCases,
  type EngineStep,
  estimateSeconds,
  findShortage,
  type KernelStep,
  nameOf,
  planSteps,
} from './cuda/plan.js';
import {
  ABSENT,
  KERNELS_PROGRAM,
  kernelArguments,
  measureMemory,
  NO_ROOM,
  prepareData,
  queryDriver,
  runProgram,
  torchArguments,
} from './cuda/programs.js';
import { renderReport, type Section } from './cuda/report.js';
import { describeMachine, ROOT, THREAD_COUNT } from './engine/machine.js';

const { values: options } = parseArgs({
  allowNegative: true,
  options: {
    full: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    torch: { type: 'boolean', default: true },
    program: { type: 'string', default: KERNELS_PROGRAM },
    out: { type: 'string' },
  },
});
const isFull = options.full;
const python = process.env.SAGITTA_BENCH_PYTHON || 'python3';
const steps = planSteps(isFull).filter((step) => nameOf(step).includes(options.only));
const sections: Section[] = [];
const engineLines: EngineLine[] = [];
const notes: string[] = [];
let torchMissing = options.torch ? null : 'disabled (--no-torch)';
let isFinished = false;

// exit runs the handlers that end child processes; the report file contains the results so far.
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));

const scratch = mkdtempSync(join(tmpdir(), 'sagitta-bench-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

const device = await findDevice();
if (typeof device === 'string') console.log(`skipped: ${device}`);
else await measureAll(device);

/** The first device, or why there is none. */
async function findDevice(): Promise<DeviceLine | string> {
  if (steps.length === 0)
    throw new Error(`--only: no step contains ${JSON.stringify(options.only)}`);
  if (!existsSync(options.program)) {
    return (
      `${relative(ROOT, options.program)} is not built; ` +
      'build it with `node scripts/build-kernels.mjs cuda cuda-bench`, which requires nvcc'
    );
  }
  let found: DeviceLine | null = null;
  const { code, message } = await runProgram(options.program, ['--json', 'peaks'], (text) => {
    const line = parseKernelLine(text);
    if (line.kind === 'device') found = line;
  });
  if (code === ABSENT) return `no device (${message.replace(/^.*no device: /, '')})`;
  if (code !== 0 || found === null) throw new Error(`the device failed: ${message}`);
  return found;
}

async function measureAll(device: DeviceLine): Promise<void> {
  const driver = await queryDriver();
  const [machine, plannedCount] = [describeMachine(), steps.reduce((n, s) => n + countCases(s), 0)];
  const report = { isFull, machine, device, driver, plannedCount };
  const render = () =>
    renderReport({ ...report, sections, engine: engineLines, notes, isFinished });
  const onFound = () => write(render());
  const memory = measureMemory(driver);
  const estimate = steps
    .filter((step) => findShortage(step, memory, null) === null)
    .reduce((sum, step) => sum + estimateSeconds(step, options.torch, THREAD_COUNT), 0);
  if (isFull) console.error(`estimated time on an H200: ${Math.ceil(estimate / 60)} minutes`);
  for (const step of steps) {
    const shortage = findShortage(step, measureMemory(await queryDriver()), null);
    if (shortage !== null) note(`skipped: ${nameOf(step)}: ${shortage}`);
    else if (step.kind === 'engine') await measureEngine(step, onFound);
    else await measureKernels(step, onFound);
    onFound();
  }
  if (torchMissing !== null) note(`skipped: torch, ${torchMissing}`);
  isFinished = true;
  onFound();
  console.log(render());
}

async function measureKernels(step: KernelStep, onFound: () => void): Promise<void> {
  const section: Section = { device: null, torch: null, kernels: [], torchCases: [] };
  sections.push(section);
  let data: string;
  try {
    data = await prepareData(step, scratch);
  } catch (error) {
    note(`skipped: ${nameOf(step)}: ${messageOf(error)}`);
    return;
  }
  try {
    const onLine = (text: string) => {
      const line = parseKernelLine(text);
      if (line.kind === 'device') section.device = line;
      else {
        section.kernels.push(line);
        console.error(`${nameOf(step)}: batch of ${line.queries}, ${line.device_ms_p50} ms`);
      }
      onFound();
    };
    const { code, message } = await runProgram(
      options.program,
      kernelArguments(step, data),
      onLine,
    );
    if (code === NO_ROOM) note(`skipped: ${nameOf(step)}: ${message}`);
    else if (code !== 0) fail(`${nameOf(step)}: exited with ${code}: ${message}`);
  } catch (error) {
    fail(`${nameOf(step)}: ${messageOf(error)}`);
  }
  if (torchMissing === null) await measureTorch(step, data, section, onFound);
}

/** Failures of torch are only noted, since the other figures do not depend on it. */
async function measureTorch(
  step: KernelStep,
  data: string,
  section: Section,
  onFound: () => void,
): Promise<void> {
  const shortage = findShortage(step, measureMemory(await queryDriver()), 'torch');
  if (shortage !== null) {
    note(`skipped: torch, ${nameOf(step)}: ${shortage}`);
    return;
  }
  try {
    const { code, message } = await runProgram(python, torchArguments(step, data), (text) => {
      const line = parseTorchLine(text);
      if (line.kind === 'device') section.torch = line;
      else if (line.kind === 'case') section.torchCases.push(line);
      else {
        const { queries, precision, failure } = line;
        note(`torch, ${nameOf(step)}, batch of ${queries}, ${precision}: ${failure}`);
      }
      onFound();
    });
    if (code === ABSENT) torchMissing = `${python}: ${message}`;
    else if (code !== 0) note(`torch, ${nameOf(step)}: exited with ${code}: ${message}`);
  } catch (error) {
    note(`torch, ${nameOf(step)}: ${messageOf(error)}`);
  }
}

async function measureEngine(step: EngineStep, onFound: () => void): Promise<void> {
  try {
    const reason = await runEngineStep(step, {
      onLine(line) {
        engineLines.push(line);
        console.error(`${nameOf(step)}: batch of ${line.queries}, ${line.p50_ms.toFixed(3)} ms`);
        onFound();
      },
    });
    if (reason !== null) note(`skipped: ${nameOf(step)}: ${reason}`);
  } catch (error) {
    fail(`${nameOf(step)}: ${messageOf(error)}`);
  }
}

function note(text: string): void {
  notes.push(text);
  console.error(text);
}

/** Records a failure and continues; the exit code will be 1. */
function fail(text: string): void {
  process.exitCode = 1;
  note(`failed: ${text}`);
}

/** Replaces the file atomically, so that it is complete whenever the bench is stopped. */
function write(report: string): void {
  if (options.out === undefined) return;
  writeFileSync(`${options.out}.new`, report);
  renameSync(`${options.out}.new`, options.out);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
