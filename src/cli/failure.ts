// Failures of the command line: the error class, the exit codes, and the report on stderr. Stack
// traces appear only with --debug.

import { CommanderError } from 'commander';
import { SagittaClientError } from '../client/client.js';
import { SagittaError } from '../common/errors.js';

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

/** A failure the user can act on; the message is printed without a stack trace. */
export class CliError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, options: { exitCode?: ExitCode; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'CliError';
    this.exitCode = options.exitCode ?? exitCodeOf(options.cause);
  }
}

/** An error of the file system as a message; the common codes are spelled out. */
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

/** Validation errors printed in full; the rest are counted. */
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
  return isUnreachable(error) ? EXIT_CODES.unreachable : EXIT_CODES.failure;
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof SagittaClientError)) return message;
  const advice = adviceOn(error);
  return advice === undefined ? message : `${message.replace(/\s*[.?]?\s*$/, '')}. ${advice}`;
}

/** What to do about a request that failed for a reason that the user can change. */
function adviceOn(error: SagittaClientError): string | undefined {
  switch (error.code) {
    case 'network_error':
      return adviceOnConnection(error.message, codesOf(error));
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

/** The codes by which Node reports that an unknown authority signed the server's certificate. */
const UNKNOWN_AUTHORITY_CODES = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
];
/** Plain HTTP, where a TLS record was expected. */
const NO_TLS_CODES = ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'EPROTO'];
/** How a server with TLS ends a connection with plain HTTP. */
const CLOSED_CODES = ['UND_ERR_SOCKET', 'ECONNRESET', 'HPE_INVALID_CONSTANT'];

function adviceOnConnection(message: string, codes: readonly string[]): string {
  const isAny = (known: readonly string[]) => codes.some((code) => known.includes(code));
  if (isAny(UNKNOWN_AUTHORITY_CODES)) {
    return 'If the certificate is your own, name its authority for Node: NODE_EXTRA_CA_CERTS=ca.pem sagitta …';
  }
  if (isAny(['ERR_TLS_CERT_ALTNAME_INVALID'])) {
    return 'Use a name or address of the certificate in --url.';
  }
  if (isAny(NO_TLS_CODES)) return 'The server speaks plain HTTP: use http:// in --url.';
  const question = 'Is the server running (sagitta serve) at this address (--url)?';
  const isPlain = message.startsWith('cannot reach http:');
  return isPlain && isAny(CLOSED_CODES)
    ? `${question} If it uses TLS, use https:// in --url.`
    : question;
}

/** The codes of an error and of its causes. */
function codesOf(error: Error): string[] {
  const codes: string[] = [];
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if ('code' in at) codes.push(String(at.code));
  }
  return codes;
}

/** Whether the message is enough to act on, without a stack trace. */
function isExpected(error: unknown): boolean {
  return (
    error instanceof CliError ||
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
