// Failures of commands: the error class, the exit codes, and the report on stderr. Stack traces appear only with
// --debug.

import {
  type ConnectionProblem,
  connectionProblemOf,
  proxyHint,
  SagittaClientError,
} from '@sagitta/client';
import { CommanderError } from 'commander';
import { SagittaError } from '../../common/errors.js';
import { MissingPackageError } from '../../platform/optional-package.js';
import { ReadError } from '../../readers/read-error.js';

export const EXIT_CODES = {
  success: 0,
  /** The arguments were valid, but the command failed. */
  failure: 1,
  /** The arguments are invalid: an unknown option, a missing argument. */
  usage: 2,
  /** The server could not be reached or the connection broke; a retry may succeed. */
  unreachable: 3,
  /** Ended by SIGINT: 128 plus the signal number, as shells report it. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES];

/** The exit codes in one sentence, for help texts. */
export const EXIT_CODES_TEXT =
  `Exit codes: ${EXIT_CODES.success} success, ${EXIT_CODES.failure} failure, ` +
  `${EXIT_CODES.usage} invalid arguments,\n` +
  `${EXIT_CODES.unreachable} server unreachable, ${EXIT_CODES.interrupted} interrupted.`;

/** A failure that the user can act on; its message is printed without a stack trace. */
export class CliError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, options: { exitCode?: ExitCode; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'CliError';
    this.exitCode = options.exitCode ?? exitCodeOf(options.cause);
  }
}

/** The message for an error of the file system; common error codes are spelled out. */
export function fileErrorText(error: unknown, path: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return `file not found: ${path}`;
  if (code === 'EISDIR') return `${path} is a directory`;
  if (code === 'EACCES') return `permission denied: ${path}`;
  return `${path}: ${message}`;
}

export function usageError(message: string): CliError {
  return new CliError(message, { exitCode: EXIT_CODES.usage });
}

/** Number of validation errors that are printed; the rest are only counted. */
const ITEMS_SHOWN_MAX = 10;

/** Prints the failure on stderr and returns the exit code. */
export function reportFailure(error: unknown, isDebug: boolean): number {
  if (error instanceof CommanderError) {
    // Commander has already printed its message or the requested help.
    return error.exitCode === 0 ? EXIT_CODES.success : EXIT_CODES.usage;
  }
  const lines = [`sagitta: ${messageOf(error)}`];
  if (error instanceof SagittaClientError) {
    // The message already contains a single validation error.
    const items = error.items.length === 1 ? [] : error.items;
    for (const item of items.slice(0, ITEMS_SHOWN_MAX)) {
      lines.push(`  at ${item.pointer}: ${item.detail}`);
    }
    const hidden = items.length - ITEMS_SHOWN_MAX;
    if (hidden > 0) lines.push(`  and ${hidden} more`);
    if (error.requestId !== undefined) lines.push(`  request id: ${error.requestId}`);
  }
  if (isDebug) lines.push(stackOf(error));
  else if (!isExpected(error)) lines.push('  Run the command with --debug for a stack trace.');
  process.stderr.write(`${lines.join('\n')}\n`);
  return exitCodeOf(error);
}

const UNREACHABLE_CODES: readonly string[] = ['network_error', 'timeout', 'circuit_open'];

/** Whether the server could not be reached or the connection to it broke. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof SagittaClientError && UNREACHABLE_CODES.includes(error.code);
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CliError) return error.exitCode;
  if (error instanceof ReadError && error.isUsage) return EXIT_CODES.usage;
  return isUnreachable(error) ? EXIT_CODES.unreachable : EXIT_CODES.failure;
}

function messageOf(error: unknown): string {
  if (!(error instanceof SagittaClientError)) {
    return error instanceof Error ? error.message : String(error);
  }
  // The messages of these errors advise about the environment, which applies to the command line too.
  if (error.code === 'unexpected_reply' || error.code === 'timeout') return error.message;
  // The message may advise changing options of the client, which a user of the command line cannot.
  const { detail } = error;
  const advice = adviceOn(error);
  return advice === undefined ? detail : `${detail.replace(/\s*[.?]?\s*$/, '')}. ${advice}`;
}

/** What the user can do about a failed request; undefined where nothing helps. */
function adviceOn(error: SagittaClientError): string | undefined {
  switch (error.code) {
    case 'network_error':
      return adviceOnConnection(error);
    case 'credentials_missing':
      return 'Name a key with --api-key or SAGITTA_API_KEY; sagitta keys create makes one.';
    case 'credentials_invalid':
      return 'Check --api-key or SAGITTA_API_KEY; sagitta keys list shows the keys that exist.';
    case 'insufficient_scope':
      return 'Use another key, or make one with sagitta keys create --scope.';
    case 'origin_not_allowed':
      return 'Commands need a key without origins; sagitta keys create makes one.';
    default:
      return undefined;
  }
}

const IS_RUNNING = 'Is the server running (sagitta serve) at this address (--url)?';

const CONNECTION_ADVICE: Readonly<Record<ConnectionProblem, string>> = {
  unknown_authority:
    'If the certificate is your own, name its authority for Node: NODE_EXTRA_CA_CERTS=ca.pem sagitta …',
  wrong_host: 'Use a name or address of the certificate in --url.',
  no_tls: 'The server speaks plain HTTP: use http:// in --url.',
  perhaps_tls: `${IS_RUNNING} If it uses TLS, use https:// in --url.`,
};

function adviceOnConnection(error: SagittaClientError): string {
  const [url = ''] = error.detail.match(/https?:\/\/[^\s/]+/) ?? [];
  const problem = connectionProblemOf(error, url);
  if (problem !== undefined) return CONNECTION_ADVICE[problem];
  const proxy = proxyHint(url);
  return proxy === undefined ? IS_RUNNING : `${IS_RUNNING} Note that ${proxy}.`;
}

/** Whether the message is enough to act on, without a stack trace. */
function isExpected(error: unknown): boolean {
  return (
    error instanceof CliError ||
    error instanceof ReadError ||
    error instanceof MissingPackageError ||
    error instanceof SagittaClientError ||
    error instanceof SagittaError ||
    // Errors of the operating system, such as a missing permission or a full disk.
    (error instanceof Error && 'syscall' in error)
  );
}

function stackOf(error: unknown): string {
  const texts: string[] = [];
  for (let at: unknown = error; at instanceof Error; at = at.cause)
    texts.push(at.stack ?? at.message);
  return texts.join('\ncaused by ');
}
