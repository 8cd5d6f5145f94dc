// The kernels for GPUs: alone, beside torch where a Python has it, and through the engine. Answers are
// checked before they are timed. Without a device it says that it is skipped, and ends with 0.
//
//   node dist/bench/cuda.js                   smoke parameters: seconds, no claim
//   node dist/bench/cuda.js --full            the parameters of docs/performance.md
//   --only TEXT         steps whose name contains TEXT, such as '1000000 × 768'
//   --no-torch          without torch; SAGITTA_BENCH_PYTHON is the Python that has it, or python3
//   --program FILE      another build of the stand-alone bench than build/kernels/cuda-bench
//   --out FILE          also writes the tables as Markdown, anew after every case

import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
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
  askDriver,
  KERNELS_PROGRAM,
  kernelArguments,
  measureMemory,
  NO_ROOM,
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
let whyNoTorch = options.torch ? null : 'not asked for (--no-torch)';
let isFinished = false;

// So that what was started ends, too; the file has what was found.
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));

const device = await findDevice();
if (typeof device === 'string') console.log(`skipped: ${device}`);
else await measureAll(device);

/** The first device, or why there is none to measure. */
async function findDevice(): Promise<DeviceLine | string> {
  if (steps.length === 0)
    throw new Error(`--only: no step contains ${JSON.stringify(options.only)}`);
  if (!existsSync(options.program)) {
    return (
      `${relative(ROOT, options.program)} is not built, so nothing is known of GPUs; ` +
      '`node scripts/build-kernels.mjs cuda cuda-bench` builds it where nvcc is'
    );
  }
  let found: DeviceLine | null = null;
  const { code, said } = await runProgram(options.program, ['--json', 'peaks'], (text) => {
    const line = parseKernelLine(text);
    if (line.kind === 'device') found = line;
  });
  if (code === ABSENT) return `no device (${said.replace(/^.*no device: /, '')})`;
  if (code !== 0 || found === null) throw new Error(`the device does not answer: ${said}`);
  return found;
}

async function measureAll(device: DeviceLine): Promise<void> {
  const driver = await askDriver();
  const [machine, plannedCount] = [describeMachine(), steps.reduce((n, s) => n + countCases(s), 0)];
  const facts = { isFull, machine, device, driver, plannedCount };
  const render = () => renderReport({ ...facts, sections, engine: engineLines, notes, isFinished });
  const onFound = () => write(render());
  const memory = measureMemory(driver);
  const estimate = steps
    .filter((step) => findShortage(step, memory, null) === null)
    .reduce((sum, step) => sum + estimateSeconds(step, options.torch, THREAD_COUNT), 0);
  if (isFull) console.error(`about ${Math.ceil(estimate / 60)} minutes on an H200, a rough guess`);
  for (const step of steps) {
    const shortage = findShortage(step, measureMemory(await askDriver()), null);
    if (shortage !== null) note(`skipped: ${nameOf(step)}, which ${shortage}`);
    else if (step.kind === 'engine') await measureEngine(step, onFound);
    else await measureKernels(step, onFound);
    onFound();
  }
  if (whyNoTorch !== null) note(`skipped: torch, ${whyNoTorch}`);
  isFinished = true;
  onFound();
  console.log(render());
}

async function measureKernels(step: KernelStep, onFound: () => void): Promise<void> {
  const section: Section = { device: null, torch: null, kernels: [], torchCases: [] };
  sections.push(section);
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
    const { code, said } = await runProgram(options.program, kernelArguments(step), onLine);
    if (code === NO_ROOM) note(`skipped: ${nameOf(step)}: ${said}`);
    else if (code !== 0) fail(`${nameOf(step)}: ended with ${code}: ${said}`);
  } catch (error) {
    fail(`${nameOf(step)}: ${messageOf(error)}`);
  }
  if (whyNoTorch === null) await measureTorch(step, section, onFound);
}

/** What torch lacks or fails at is noted: our figures do not depend on it. */
async function measureTorch(step: KernelStep, section: Section, onFound: () => void) {
  const shortage = findShortage(step, measureMemory(await askDriver()), 'torch');
  if (shortage !== null) {
    note(`skipped: torch over ${nameOf(step)}, which ${shortage}`);
    return;
  }
  try {
    const { code, said } = await runProgram(python, torchArguments(step), (text) => {
      const line = parseTorchLine(text);
      if (line.kind === 'device') section.torch = line;
      else if (line.kind === 'case') section.torchCases.push(line);
      else {
        const { queries, precision, failure } = line;
        note(`torch over ${nameOf(step)}, batch of ${queries}, ${precision}: ${failure}`);
      }
      onFound();
    });
    if (code === ABSENT) whyNoTorch = `${python}: ${said}`;
    else if (code !== 0) note(`torch over ${nameOf(step)} ended with ${code}: ${said}`);
  } catch (error) {
    note(`torch over ${nameOf(step)}: ${messageOf(error)}`);
  }
}

async function measureEngine(step: EngineStep, onFound: () => void): Promise<void> {
  try {
    const absence = await runEngineStep(step, {
      onLine(line) {
        engineLines.push(line);
        console.error(`${nameOf(step)}: batch of ${line.queries}, ${line.p50_ms.toFixed(3)} ms`);
        onFound();
      },
    });
    if (absence !== null) note(`skipped: ${nameOf(step)}: ${absence}`);
  } catch (error) {
    fail(`${nameOf(step)}: ${messageOf(error)}`);
  }
}

function note(text: string): void {
  notes.push(text);
  console.error(text);
}

/** The rest is still worth measuring; the exit code says that something was not right. */
function fail(text: string): void {
  process.exitCode = 1;
  note(`failed: ${text}`);
}

/** In one step: whoever ends the bench finds a whole file. */
function write(report: string): void {
  if (options.out === undefined) return;
  writeFileSync(`${options.out}.new`, report);
  renameSync(`${options.out}.new`, options.out);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
