// The libFuzzer programs of the kernels: builds them with clang, and runs each on a copy of its corpus.

import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Relative to the compiled file in dist/test/hostile/native. */
const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const CORPUS = join(ROOT, 'test', 'hostile', 'native', 'corpus');
const INPUT_BYTES_MAX = 2_000;
/** Time for one input after which libFuzzer reports a hang. */
const INPUT_SECONDS_MAX = 60;

export const NATIVE_FUZZERS = ['json', 'search', 'crc32'] as const;
export type NativeFuzzer = (typeof NATIVE_FUZZERS)[number];

export interface NativeReport {
  readonly runCount: number;
  readonly exitCode: number | null;
  readonly output: string;
  /** The failing input as base64. */
  readonly input: string | null;
}

/** Returns null if they are built; otherwise the reason. */
export function buildNativeFuzzers(names: readonly NativeFuzzer[]): string | null {
  const script = join(ROOT, 'scripts', 'build-kernels.mjs');
  const targets = names.map((name) => `fuzz-${name}`);
  const { status, stderr } = spawnSync(process.execPath, [script, ...targets], {
    encoding: 'utf8',
  });
  return status === 0 ? null : stderr.trim();
}

/** `seed` must be greater than 0. */
export async function runNativeFuzzer(
  name: NativeFuzzer,
  options: { readonly seed: number; readonly seconds: number },
): Promise<NativeReport> {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-native-fuzz-'));
  try {
    const inputs = join(folder, 'inputs');
    cpSync(join(CORPUS, name), inputs, { recursive: true });
    const program = join(ROOT, 'build', 'kernels', `fuzz-${name}`);
    const child = spawn(
      program,
      [
        `-seed=${options.seed}`,
        `-max_total_time=${options.seconds}`,
        `-max_len=${INPUT_BYTES_MAX}`,
        `-timeout=${INPUT_SECONDS_MAX}`,
        `-artifact_prefix=${folder}/failed-`,
        '-print_final_stats=1',
        inputs,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    const failed = readdirSync(folder).find((file) => file.startsWith('failed-'));
    return {
      runCount: Number(/number_of_executed_units: +(\d+)/.exec(output)?.[1] ?? 0),
      exitCode,
      output,
      input: failed === undefined ? null : readFileSync(join(folder, failed), 'base64'),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
