// `sagitta doctor gpu`: reports what the cuda engine finds on this machine, what it chooses and why, or what is
// missing. It needs no server; the table or JSON goes to stdout.

import { Command } from 'commander';
import { printable } from '../../common/printable.js';
import type { GpuReport } from '../../tools/doctor/gpu.js';
import { EXIT_CODES } from '../terminal/failure.js';
import { formatSeconds } from '../terminal/units.js';

const EXAMPLES = `
Checks each kind of kernel on each GPU in a separate process, as the server does
when it starts, and prints which kernels are used and why. Without a usable GPU
it prints what is missing and what to do.

Examples:
  $ sagitta doctor gpu
  $ sagitta doctor gpu --json > gpu.json

Exit codes: ${EXIT_CODES.success} a GPU is usable, ${EXIT_CODES.failure} none is,
${EXIT_CODES.usage} invalid arguments.`;

interface DoctorOptions {
  readonly json?: boolean;
  readonly addon?: string;
}

export function defineDoctor(command: Command): void {
  const gpu = new Command('gpu')
    .description('examine the GPUs of this machine and their kernels')
    .option('--json', 'print the report as JSON')
    .option('--addon <file>', 'the native addon to examine (default: the one the server uses)')
    .addHelpText('after', EXAMPLES)
    .action(doctorGpu);
  command.addCommand(gpu);
}

async function doctorGpu({ json = false, addon }: DoctorOptions): Promise<void> {
  // Loaded only here, so that the other commands start in half the time.
  const { examineGpus } = await import('../../tools/doctor/gpu.js');
  const report = await examineGpus(addon === undefined ? {} : { addonPath: addon });
  const text = json ? JSON.stringify(report, null, 2) : renderGpuReport(report).join('\n');
  process.exitCode = report.isUsable ? EXIT_CODES.success : EXIT_CODES.failure;
  process.stdout.write(`${text}\n`);
}

export function renderGpuReport(report: GpuReport): string[] {
  const { addon, problem, devices, isUsable, advice } = report;
  const lines = [`addon     ${addon.path}${addon.isBuilt ? '' : ' (missing)'}`];
  if (problem !== null) lines.push(`problem   ${printable(problem)}`);
  const [first] = devices;
  if (first !== undefined) {
    const { driverVersion, runtimeVersion } = first.facts;
    lines.push(
      `CUDA      driver ${cudaVersion(driverVersion)}, kernels ${cudaVersion(runtimeVersion)}`,
    );
  }
  for (const { index, facts, checks, chosen, why } of devices) {
    const gibibytes = (bytes: number) => (bytes / 2 ** 30).toFixed(1);
    const free = facts.freeBytes === 0 ? '' : `, ${gibibytes(facts.freeBytes)} free`;
    lines.push(
      `GPU ${index}     ${printable(facts.name)}, compute capability ` +
        `${(facts.computeCapability / 10).toFixed(1)}, ${facts.multiprocessorCount} multiprocessors, ` +
        `${gibibytes(facts.memoryBytes)} GiB${free}`,
    );
    for (const { kernels, outcome, reason, seconds } of checks) {
      const details = [seconds === null ? '' : formatSeconds(seconds), printable(reason ?? '')];
      lines.push(
        `  ${kernels.padEnd(10)}  ${[outcome, ...details].filter((part) => part !== '').join(', ')}`,
      );
    }
    lines.push(chosen === null ? `  not used: ${why}` : `  uses ${chosen}: ${why}`);
  }
  lines.push(`engine    ${isUsable ? 'cuda can be used' : 'cuda cannot be used; the CPU answers'}`);
  for (const what of advice) lines.push(`next      ${what}`);
  return lines;
}

/** 13000 is 13.0. */
function cudaVersion(version: number): string {
  return `${Math.floor(version / 1_000)}.${Math.floor((version % 1_000) / 10)}`;
}
