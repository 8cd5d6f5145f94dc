// `sagitta serve`: runs the server until a signal stops it. The options are generated from the table of settings in
// platform/config.ts.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { isatty } from 'node:tty';
import { type Command, Option } from 'commander';
import { SagittaError } from '../../common/errors.js';
import { DEFAULT_LIMITS } from '../../common/limits.js';
import { whenAborted } from '../../common/when-aborted.js';
import type { RunningServer, StartOptions } from '../../main.js';
import {
  type Config,
  describeSettings,
  loadConfig,
  type SettingDescription,
} from '../../platform/config.js';
import { OPEN_FILES_MIN, openFilesMax } from '../../platform/open-files.js';
import { serverEnvironment } from '../service/connection.js';
import { CliError, EXIT_CODES, usageError } from '../terminal/failure.js';

const EXAMPLES = `
Options take precedence over environment variables.

Examples:
  $ sagitta serve
  $ sagitta serve --port 9000 --data-dir /var/lib/sagitta
  $ SAGITTA_LOG_LEVEL=debug sagitta serve

On SIGTERM or SIGINT the server finishes open requests, for at most
--shutdown-ms, and stops; a second signal ends it at once. SIGHUP does the same
when a terminal is closed; without a terminal, as under nohup, it has no effect.`;

/**
 * Threads for operations on files, names of hosts, compression and signatures. If the disk stalls, the operations of
 * the journal and of reads occupy their threads until it answers again, and the default of 4 would leave none for
 * clients that need no disk. A thread costs about 10 KB until it is used.
 */
const FILE_THREADS = 16;

export function defineServe(command: Command): void {
  command.addHelpText('after', EXAMPLES);
  for (const setting of describeSettings()) {
    if (setting.fileVariable !== null) continue;
    const group = setting.name in DEFAULT_LIMITS ? 'Limits:' : 'Settings:';
    command.addOption(optionOf(setting).helpGroup(group));
  }
  command.action(async (overrides: Record<string, string>) => {
    await serve(readConfig(overrides), (server) => {
      process.stdout.write(
        `Sagitta is listening on ${server.url}. API documentation: ${server.url}/docs\n`,
      );
    });
  });
}

/** `--port <value>` for a setting. */
export function optionOf(setting: SettingDescription): Option {
  return new Option(`${setting.option} <value>`, helpOf(setting));
}

function helpOf({ help, variable, unit, default: value }: SettingDescription): string {
  const defaultText = value === '' ? '' : `, default ${value}${unit === null ? '' : ` ${unit}`}`;
  return `${help} (${variable}${defaultText})`;
}

/** Throws CliError when a setting is invalid. */
export function readConfig(overrides: Record<string, string>): Config {
  try {
    return loadConfig({ env: serverEnvironment(), overrides });
  } catch (error) {
    if (error instanceof SagittaError) throw usageError(error.message);
    throw error;
  }
}

/**
 * Resolves when a signal has stopped the server, even if `onReady` has not finished. Throws when the disk fails, so
 * that the supervisor of the process starts it again.
 */
export async function serve(
  config: Config,
  onReady: (server: RunningServer) => void | Promise<void>,
  options: Omit<StartOptions, 'stopping'> = {},
): Promise<void> {
  requireFiles();
  process.env.UV_THREADPOOL_SIZE ??= String(FILE_THREADS);
  const stopping = abortOnSignal();
  // Loaded only here, so that the other commands start in half the time.
  const { startServer: start } = await import('../../main.js');
  const isNew = !existsSync(config.dataDir);
  const server = await start(config, { ...options, stopping }).catch((error: unknown) => {
    if (error !== stopping.reason) throw error;
  });
  if (server === undefined) return;
  if (isNew) process.stdout.write(`Created the data directory ${resolve(config.dataDir)}.\n`);
  try {
    if (stopping.aborted) return;
    const stopped = new Promise<void>((resolve) => whenAborted(stopping, resolve));
    const ending = Promise.race([stopped, server.failed.then(failForDisk)]);
    await Promise.race([ending, onReady(server)]);
    await ending;
  } finally {
    await server.stop();
  }
}

/** Called before modules are loaded: with too few files, loading fails without naming the cause. */
function requireFiles(): void {
  const countMax = openFilesMax();
  if (countMax >= OPEN_FILES_MIN) return;
  throw new CliError(
    `this process may open only ${countMax} files and connections, and the server needs ${OPEN_FILES_MIN}; raise the limit, for example with ulimit -n 65536, or LimitNOFILE= of systemd`,
  );
}

function failForDisk({ message, cause }: SagittaError): never {
  throw new CliError(`${message} The error was: ${(cause as Error).message}`);
}

/** Aborts on the first signal; a second one ends the process at once. */
function abortOnSignal(): AbortSignal {
  const stopping = new AbortController();
  const stop = () => {
    stopping.abort(new SagittaError('stopping', 'The service was told to stop.'));
  };
  const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping.signal.aborted) endBy(signal);
    stop();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  // Node does not keep the signal ignored as nohup asks, but a process under nohup has no terminal. A closed terminal
  // may send the signal several times, so a second SIGHUP does not end the process.
  process.on('SIGHUP', () => {
    if (hasTerminal) stop();
  });
  return stopping.signal;
}

/** Ends the process by the signal itself: process.exit makes Node abort while a thread loads modules. */
function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // A signal without a listener does not end the first process of a container.
  if (process.pid === 1) process.exit(EXIT_CODES.failure);
}
