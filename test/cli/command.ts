// Runs the command line in a child process and captures its output and exit code.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PATIENT_SETTINGS } from '../support/patience.js';

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly cwd?: string;
}

export interface RunningCommand {
  /** Resolves when stdout contains a match; rejects when the process ends without one. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  /** The same for stderr. */
  waitForStderr(pattern: RegExp): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
  readonly ended: Promise<CommandResult>;
}

/** A failed test may leave its command running; it is killed at the end of the test file. */
const running = new Set<ChildProcess>();
after(() => {
  for (const child of running) child.kill('SIGKILL');
});

export function start(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SAGITTA_'));
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: options.cwd,
    env: { ...Object.fromEntries(inherited), ...PATIENT_SETTINGS, ...options.env },
    stdio: 'pipe',
  });
  running.add(child);
  child.on('close', () => running.delete(child));
  let stdout = '';
  let stderr = '';
  const listeners = new Set<() => void>();
  const onOutput = (): void => {
    for (const listener of listeners) listener();
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    onOutput();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    onOutput();
  });
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  const ended = new Promise<CommandResult>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  const waitForMatch = (pattern: RegExp, output: () => string): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        const found = pattern.exec(output());
        if (found === null) return;
        listeners.delete(check);
        resolve(found);
      };
      listeners.add(check);
      check();
      ended.then(() => reject(new Error(`ended before ${pattern}: ${stdout}${stderr}`)));
    });
  return {
    waitFor: (pattern) => waitForMatch(pattern, () => stdout),
    waitForStderr: (pattern) => waitForMatch(pattern, () => stderr),
    signal: (signal) => child.kill(signal),
    ended,
  };
}

export function run(args: readonly string[], options?: CommandOptions): Promise<CommandResult> {
  return start(args, options).ended;
}

/** A temporary folder; the caller removes it. */
export async function makeFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'sagitta-cli-'));
  return { path, remove: () => rm(path, { recursive: true }) };
}
