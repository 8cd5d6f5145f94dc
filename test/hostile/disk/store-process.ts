// Runs store-rounds.ts in a process with a faulty disk.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FaultyDisk } from './faults.js';
import type { StorePlan, StoreReport } from './store-rounds.js';

const PROGRAM = fileURLToPath(new URL('./store-rounds.js', import.meta.url));

/** @param library from `compileFaults`. Throws if the process does not exit by itself. */
export async function runStorePlan(library: string, plan: StorePlan): Promise<StoreReport> {
  const root = mkdtempSync(join(tmpdir(), 'sagitta-faulty-store-'));
  const folder = join(root, 'disk');
  mkdirSync(folder);
  const disk = new FaultyDisk(library, folder, join(root, 'control'));
  try {
    const child = spawn(
      process.execPath,
      [PROGRAM, folder, join(root, 'control'), JSON.stringify(plan)],
      { env: { ...process.env, ...disk.environment }, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    let output = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    if (code !== 0) throw new Error(`the process was ended by ${signal ?? code}: ${errors}`);
    return JSON.parse(output) as StoreReport;
  } finally {
    disk.close();
    rmSync(root, { recursive: true, force: true });
  }
}
