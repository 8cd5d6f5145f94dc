// Runs the command line as a user does: a process of its own, its output and its exit code.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

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
  /** Resolves when stdout holds a match; rejects when the process ends before. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
  readonly ended: Promise<CommandResult>;
}

/** A test that fails in the middle leaves its command running; the end of its file does not. */
const running = new Set<ChildProcess>();
after(() => {
  for (const child of running) child.kill('SIGKILL');
});

export function start(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SAGITTA_'));
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: options.cwd,
    env: { ...Object.fromEntries(inherited), ...options.env },
    stdio: 'pipe',
  });
  running.add(child);
  child.on('close', () => running.delete(child));
  let stdout = '';
  let stderr = '';
  let onOutput = (): void => {};
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    onOutput();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  const ended = new Promise<CommandResult>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  return {
    waitFor: (pattern) =>
      new Promise((resolve, reject) => {
        onOutput = () => {
          const found = pattern.exec(stdout);
          if (found !== null) resolve(found);
        };
        onOutput();
        ended.then(() => reject(new Error(`ended before ${pattern}: ${stdout}${stderr}`)));
      }),
    signal: (signal) => child.kill(signal),
    ended,
  };
}

export function run(args: readonly string[], options?: CommandOptions): Promise<CommandResult> {
  return start(args, options).ended;
}

/** A folder for one test file; `remove` it at the end. */
export async function makeFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'sagitta-cli-'));
  return { path, remove: () => rm(path, { recursive: true }) };
}
