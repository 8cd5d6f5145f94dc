// Emulated GPUs in processes of their own, and their faults: a file tells the next process that calls the
// emulated driver which fault happens; that process removes it.

import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type CudaKernels,
  connectKernels,
  loadCudaAddon,
} from '../../../src/engine/cuda/cuda-kernels.js';
import { DEVICE_DEADLINES } from '../../../src/engine/cuda/cuda-link.js';

/** Relative to the compiled file in dist/. */
export const ADDON = fileURLToPath(
  new URL('../../../../build/kernels/sagitta-cuda-emulated.node', import.meta.url),
);
export const MISSING_ADDON = existsSync(ADDON)
  ? false
  : 'the emulated GPU kernels are not built; run `node scripts/build-kernels.mjs cuda-emulated`';

const PROGRAM = fileURLToPath(new URL('../../../src/engine/cuda/cuda-process.js', import.meta.url));

/** Connects to the kernels of a device in a new process, for calls without an engine. */
export function connectEmulated(): { kernels: CudaKernels; end(): void } {
  const addon = loadCudaAddon(ADDON);
  const { service: socket, device, memory } = addon.createChannel();
  const child = spawn(process.execPath, [PROGRAM, ADDON, 'serve'], {
    stdio: ['ignore', 'ignore', 'inherit', device, memory],
  });
  closeSync(device);
  return {
    kernels: connectKernels(addon, { socket, memory }, DEVICE_DEADLINES),
    end() {
      child.kill('SIGKILL');
      closeSync(socket);
      closeSync(memory);
    },
  };
}

export interface FaultFile {
  /** Arms a fault such as 'hang launch 3' or 'killed call 1', counted from the next call on. */
  arm(fault: string): void;
  isArmed(): boolean;
}

/** GPU processes that start during the test read the file at each call. */
export function createFaultFile(t: TestContext): FaultFile {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-fault-'));
  const path = join(folder, 'fault');
  process.env.SAGITTA_TEST_EMULATED_FAULT_FILE = path;
  t.after(() => {
    delete process.env.SAGITTA_TEST_EMULATED_FAULT_FILE;
    rmSync(folder, { recursive: true });
  });
  return {
    arm: (fault) => writeFileSync(path, `${fault}\n`),
    isArmed: () => existsSync(path),
  };
}
