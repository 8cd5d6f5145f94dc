// What the cuda engine finds on this machine: the addon, the driver, the GPUs, and which kernels pass their check on
// each. Each check runs in its own process, so that a fault in one does not affect the others.

import { existsSync } from 'node:fs';
import {
  cudaAddonPath,
  type DeviceDeadlines,
  type DeviceFacts,
} from '../../engine/cuda/cuda-kernels.js';
import { connectProcess, listDevices } from '../../engine/cuda/cuda-link.js';
import { buildCommand } from '../../platform/native-addon.js';

/**
 * Kernels in the order in which searches prefer them. All but mma require exactly compute capability 9.0. Searches
 * never use wgmma-ring; its check shows whether it can be benchmarked.
 */
const KERNELS = ['wgmma', 'mma', 'wgmma-ring'] as const;
type KernelsName = (typeof KERNELS)[number];
const CAPABILITY_MIN = 80;
const CAPABILITY_OF_WGMMA = 90;

interface KernelsCheck {
  readonly kernels: KernelsName;
  readonly outcome: 'passed' | 'failed' | 'not for this GPU';
  /** Null unless the check failed. */
  readonly reason: string | null;
  /** Time since the start of the check's process; null if none was started. */
  readonly seconds: number | null;
}

interface DeviceReport {
  readonly index: number;
  /** `freeBytes` is known only if a check has passed; the kernels are not included. */
  readonly facts: DeviceFacts;
  readonly checks: readonly KernelsCheck[];
  /** The kernels that searches use; null if the device is not used. */
  readonly chosen: KernelsName | null;
  readonly why: string;
}

export interface GpuReport {
  readonly addon: { readonly path: string; readonly isBuilt: boolean };
  /** Why no device was found; null if one was. */
  readonly problem: string | null;
  readonly devices: readonly DeviceReport[];
  /** Whether the engine `cuda` starts. */
  readonly isUsable: boolean;
  /** What to do next; empty if nothing is missing. */
  readonly advice: readonly string[];
}

export interface GpuExamination {
  readonly addonPath?: string;
  readonly deadlines?: Partial<DeviceDeadlines>;
}

export async function examineGpus(options: GpuExamination = {}): Promise<GpuReport> {
  const path = options.addonPath ?? cudaAddonPath();
  const addon = { path, isBuilt: existsSync(path) };
  const nothing = { addon, devices: [], isUsable: false };
  if (!addon.isBuilt) {
    const advice = [`build the kernels: ${buildCommand('cuda')} (needs nvcc of CUDA 13)`];
    return { ...nothing, problem: 'the CUDA kernels are not built', advice };
  }
  let found: DeviceFacts[];
  try {
    found = await listDevices(path);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { ...nothing, problem, advice: adviceFor(problem) };
  }
  if (found.length === 0) {
    const problem = 'the driver found no NVIDIA GPU';
    return { ...nothing, problem, advice: adviceFor(problem) };
  }
  const devices: DeviceReport[] = [];
  // Checks run one after another, because checks of two devices at once could hide which one stops the driver.
  for (const [index, facts] of found.entries()) {
    devices.push(await examineDevice(index, facts, options));
  }
  const isUsable = devices.some(({ chosen }) => chosen !== null);
  const advice = devices.flatMap(({ index, checks }) =>
    checks
      .filter(({ outcome }) => outcome === 'failed')
      .map(
        ({ kernels }) =>
          `report the failure of ${kernels} on GPU ${index}, with the output of ` +
          '`build/kernels/cuda-test` and of `nvidia-smi -q`',
      ),
  );
  return { addon, problem: null, devices, isUsable, advice };
}

function adviceFor(problem: string): string[] {
  if (/no NVIDIA driver/.test(problem)) {
    return ['install the NVIDIA driver, 580 or later; in a container, start it with `--gpus all`'];
  }
  if (/driver supports CUDA/.test(problem)) return ['update the NVIDIA driver to 580 or later'];
  if (/no NVIDIA GPU/.test(problem)) {
    return ['check `nvidia-smi` and CUDA_VISIBLE_DEVICES; in a container, use `--gpus all`'];
  }
  if (/did not answer/.test(problem)) {
    return ['look for `Xid` in the output of `dmesg`; the GPU may need a reset or a reboot'];
  }
  return ['run `nvidia-smi`; if it fails too, the driver has to be repaired first'];
}

async function examineDevice(
  index: number,
  facts: DeviceFacts,
  options: GpuExamination,
): Promise<DeviceReport> {
  const checks: KernelsCheck[] = [];
  let freeBytes = 0;
  for (const kernels of KERNELS) {
    if (!isFor(kernels, facts)) {
      const outcome = 'not for this GPU';
      checks.push({ kernels, outcome, reason: null, seconds: null });
      continue;
    }
    const startMs = performance.now();
    const opened = await checkKernels(index, kernels, options);
    const seconds = (performance.now() - startMs) / 1_000;
    if (opened instanceof Error) {
      checks.push({ kernels, outcome: 'failed', reason: opened.message, seconds });
    } else {
      freeBytes = opened.freeBytes;
      checks.push({ kernels, outcome: 'passed', reason: null, seconds });
    }
  }
  // Small batches always use mma, so wgmma alone is not enough.
  const passed = checks.filter(({ outcome }) => outcome === 'passed').map((check) => check.kernels);
  const used = passed.includes('wgmma') ? 'wgmma' : 'mma';
  const chosen = passed.includes('mma') ? used : null;
  return {
    index,
    facts: { ...facts, freeBytes },
    checks,
    chosen,
    why: reasonFor(chosen, facts, checks),
  };
}

function isFor(kernels: KernelsName, { computeCapability }: DeviceFacts): boolean {
  if (kernels === 'mma') return computeCapability >= CAPABILITY_MIN;
  return computeCapability === CAPABILITY_OF_WGMMA;
}

function reasonFor(
  chosen: KernelsName | null,
  { computeCapability }: DeviceFacts,
  checks: readonly KernelsCheck[],
): string {
  const version = (computeCapability / 10).toFixed(1);
  if (computeCapability < CAPABILITY_MIN) return `compute capability ${version} is below 8.0`;
  if (chosen === null) return 'the mma kernels, which every search needs, failed their check';
  if (chosen === 'wgmma') return 'both kernels answer as the CPU does, and wgmma is faster';
  const hasFailed = checks.some((it) => it.kernels === 'wgmma' && it.outcome === 'failed');
  return hasFailed
    ? 'the wgmma kernels failed their check'
    : `wgmma needs compute capability 9.0, this GPU has ${version}`;
}

/** Opens the device with these kernels, which runs their check, and closes it. */
async function checkKernels(
  index: number,
  kernels: KernelsName,
  { addonPath, deadlines = {} }: GpuExamination,
): Promise<DeviceFacts | Error> {
  const addon = addonPath === undefined ? {} : { addonPath };
  const connect = connectProcess({ ...addon, kernelsName: kernels, deadlines });
  let close = async (): Promise<void> => {};
  const opened = await new Promise<DeviceFacts | Error>((resolve) => {
    const link = connect(index, {
      reply: (reply) => {
        if (reply.kind === 'ready') resolve(reply.facts);
      },
      excluded: () => {},
      end: resolve,
    });
    close = () => link.close();
  });
  await close();
  return opened;
}
