// How the command line fails: a sentence on stderr that says what was found, what was expected and
// where, and an exit code. Stack traces are for --debug.

import { CommanderError } from 'commander';
import { SagittaClientError } from '../client/client.js';
import { SagittaError } from '../common/errors.js';

export const EXIT_CODES = {
  success: 0,
  /** The command was understood and could not be carried out. */
  failure: 1,
  /** The command was not understood: a wrong option, a missing argument. */
  usage: 2,
  /** The service could not be reached, or went away: the same command may succeed later. */
  unreachable: 3,
  /** Ended by Ctrl-C, as shells say it: 128 and the number of the signal. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES];

/** For help texts. */
export const EXIT_CODES_TEXT =
  `Exit codes: ${EXIT_CODES.success} done, ${EXIT_CODES.failure} failed, ` +
  `${EXIT_CODES.usage} not understood,\n` +
  `${EXIT_CODES.unreachable} service not reached, ${EXIT_CODES.interrupted} interrupted.`;

/** A failure that the user can do something about. */
export class CliError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, options: { exitCode?: ExitCode; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'CliError';
    this.exitCode = options.exitCode ?? exitCodeOf(options.cause);
  }
}

/** Why the operating system refused a file, in words where it is the usual reason. */
export function reasonOf(error: unknown, path: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return `there is no file ${path}`;
  if (code === 'EISDIR') return `${path} is a folder`;
  if (code === 'EACCES') return `this user may not open ${path}`;
  return `${path}: ${message}`;
}

export function usageError(message: string): CliError {
  return new CliError(message, { exitCode: EXIT_CODES.usage });
}

/** A page of findings says no more than the first few. */
const ITEMS_SHOWN_MAX = 10;

/** Says what went wrong on stderr and returns the exit code. */
export function reportFailure(error: unknown, isDebug: boolean): number {
  if (error instanceof CommanderError) {
    // Commander has printed its sentence, or the help that was asked for.
    return error.exitCode === 0 ? EXIT_CODES.success : EXIT_CODES.usage;
  }
  const lines = [`sagitta: ${messageOf(error)}`];
  if (error instanceof SagittaClientError) {
    // The sentence of a single finding says it all.
    const items = error.items.length === 1 ? [] : error.items;
    for (const item of items.slice(0, ITEMS_SHOWN_MAX)) {
      lines.push(`  at ${item.pointer}: ${item.detail}`);
    }
    const hidden = items.length - ITEMS_SHOWN_MAX;
    if (hidden > 0) lines.push(`  and ${hidden} more`);
    if (error.requestId !== undefined) lines.push(`  request ${error.requestId}`);
  }
  if (isDebug) lines.push(stackOf(error));
  else if (!isExpected(error)) lines.push('  Run it again with --debug to see where.');
  process.stderr.write(`${lines.join('\n')}\n`);
  return exitCodeOf(error);
}

const UNREACHABLE_CODES: readonly string[] = ['network_error', 'timeout', 'circuit_open'];

/** Whether the service was not there, or not any more. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof SagittaClientError && UNREACHABLE_CODES.includes(error.code);
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CliError) return error.exitCode;
  return isUnreachable(error) ? EXIT_CODES.unreachable : EXIT_CODES.failure;
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof SagittaClientError && error.code === 'network_error') {
    return `${message}. Is the server running (sagitta serve), and is this its address (--url)?`;
  }
  return message;
}

/** Whether the message alone tells the user what to do. */
function isExpected(error: unknown): boolean {
  return (
    error instanceof CliError ||
    error instanceof SagittaClientError ||
    error instanceof SagittaError ||
    // Of the operating system: a folder that may not be read, a disk that is full.
    (error instanceof Error && 'syscall' in error)
  );
}

function stackOf(error: unknown): string {
  const texts: string[] = [];
  for (let at: unknown = error; at instanceof Error; at = at.cause)
    texts.push(at.stack ?? at.message);
  return texts.join('\ncaused by ');
}
