// `sagitta serve`: runs the server until a signal stops it. The options are generated from the table of
// settings in platform/config.ts.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { SagittaError } from '../../common/errors.js';
import { DEFAULT_LIMITS } from '../../common/limits.js';
import type { RunningServer } from '../../main.js';
import {
  type Config,
  describeSettings,
  loadConfig,
  type SettingDescription,
} from '../../platform/config.js';
import { serverEnvironment } from '../connection.js';
import { CliError, EXIT_CODES, usageError } from '../failure.js';

const EXAMPLES = `
Options take precedence over environment variables.

Examples:
  $ sagitta serve
  $ sagitta serve --port 9000 --data-dir /var/lib/sagitta
  $ SAGITTA_LOG_LEVEL=debug sagitta serve

On SIGTERM or SIGINT the server finishes open requests, for at most
--shutdown-ms, and stops; a second signal ends it at once.`;

export function defineServe(command: Command): void {
  command.addHelpText('after', EXAMPLES);
  for (const setting of describeSettings()) {
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
 * that whatever supervises the process starts it again.
 */
export async function serve(
  config: Config,
  onReady: (server: RunningServer) => void | Promise<void>,
): Promise<void> {
  const stopping = waitForSignal();
  // Loaded only here, so that the other commands start in half the time.
  const { startServer } = await import('../../main.js');
  const isNew = !existsSync(config.dataDir);
  const server = await startServer(config);
  if (isNew) process.stdout.write(`Created the data directory ${resolve(config.dataDir)}.\n`);
  try {
    const ending = Promise.race([stopping, server.failed.then(failForDisk)]);
    await Promise.race([ending, onReady(server)]);
    await ending;
  } finally {
    await server.stop();
  }
}

function failForDisk({ message, cause }: SagittaError): never {
  throw new CliError(`${message} The error was: ${(cause as Error).message}`);
}

/** Resolves on the first signal; a second one ends the process at once. */
function waitForSignal(): Promise<void> {
  return new Promise((resolve) => {
    let isStopping = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (isStopping) endBy(signal);
      isStopping = true;
      resolve();
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}

/** As if nobody listened to the signal: process.exit would make Node abort while a thread loads modules. */
function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // The first process of a container is not ended by a signal that it does not listen to.
  if (process.pid === 1) process.exit(EXIT_CODES.failure);
}
