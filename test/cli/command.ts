// Runs the command line in a child process and captures its output and exit code. `run` is for commands that end by
// themselves, `start` for commands that a test signals or whose output it waits for.

import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageFile } from '../../src/common/package-files.js';
import { releaseAtEnd } from '../support/leftovers.js';
import { endWithThisProcess, unrefChild } from '../support/shared-process.js';
import type { CommandReply, CommandRequest } from './command-process.js';

const MAIN = packageFile('scripts/sagitta.cjs');
const COMMAND_PROCESS = fileURLToPath(new URL('./command-process.js', import.meta.url));

export interface CommandResult {
  readonly code: number | null;
  /** The signal that ended a process of `start`. */
  readonly signal?: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /**
   * The text on stdout after which the input is written: `script` drops the end of the input if it is not read within
   * two seconds.
   */
  readonly inputAfter?: RegExp | undefined;
  readonly cwd?: string;
  /** Whether stdin, stdout and stderr are a terminal, whose output is captured as stdout. */
  readonly isOnTerminal?: boolean;
}

export interface RunningCommand {
  readonly pid: number;
  /** Resolves when stdout contains a match; rejects when the process ends without one. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  /** Like `waitFor`, for stderr. */
  waitForStderr(pattern: RegExp): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
  readonly ended: Promise<CommandResult>;
}

/** Starts the command in a separate process. */
export function start(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  const [program, ...words] = commandLine(args, options);
  const child = spawn(program, words, {
    cwd: options.cwd,
    env: environmentOf(options),
    stdio: 'pipe',
  });
  child.on(
    'close',
    releaseAtEnd(() => child.kill('SIGKILL')),
  );
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
  const { input = '', inputAfter } = options;
  if (inputAfter === undefined) child.stdin.end(input);
  const ended = new Promise<CommandResult>((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
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
  if (inputAfter !== undefined) {
    waitForMatch(inputAfter, () => stdout).then(
      () => child.stdin.end(input),
      // `ended` resolves to what the command printed instead.
      () => {},
    );
  }
  return {
    waitFor: (pattern) => waitForMatch(pattern, () => stdout),
    waitForStderr: (pattern) => waitForMatch(pattern, () => stderr),
    pid: child.pid!,
    signal: (signal) => child.kill(signal),
    ended,
  };
}

/** The arguments of `script`, which runs a shell command on a new terminal. */
function commandLine(args: readonly string[], options: CommandOptions): [string, ...string[]] {
  if (options.isOnTerminal !== true) return [process.execPath, MAIN, ...args];
  const words = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(' ');
  return ['script', '--quiet', '--return', '--command', `exec ${words}`, '/dev/null'];
}

/**
 * Runs the command to its end: in the shared process, which has already loaded the modules, or in a separate one when
 * it has input. All test files of a process share it.
 */
export function run(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  if (options.input !== undefined && options.input !== '') return start(args, options).ended;
  const request: CommandRequest = {
    args,
    env: environmentOf(options),
    cwd: options.cwd ?? process.cwd(),
  };
  const result = lastRun.then(() => runInCommandProcess(request));
  lastRun = result.catch(() => {});
  return result;
}

let lastRun: Promise<unknown> = Promise.resolve();
let commandProcess: ChildProcess | undefined;

async function runInCommandProcess(request: CommandRequest): Promise<CommandReply> {
  if (commandProcess?.connected !== true) {
    commandProcess = fork(COMMAND_PROCESS, {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    endWithThisProcess(commandProcess);
  }
  const child = commandProcess;
  child.ref();
  child.channel?.ref();
  const listening = new AbortController();
  const { signal } = listening;
  const replied = once(child, 'message', { signal });
  const ended = once(child, 'exit', { signal }).then(() => {
    throw new Error(`the process of commands ended during: ${request.args.join(' ')}`);
  });
  child.send(request);
  try {
    const [reply] = await Promise.race([replied, ended]);
    return reply as CommandReply;
  } finally {
    listening.abort();
    ended.catch(() => {});
    unrefChild(child);
  }
}

function environmentOf({ env }: CommandOptions): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SAGITTA_'));
  return { ...Object.fromEntries(inherited), ...env };
}

/** A temporary folder; the caller removes it. */
export async function makeFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'sagitta-cli-'));
  return { path, remove: () => rm(path, { recursive: true }) };
}
