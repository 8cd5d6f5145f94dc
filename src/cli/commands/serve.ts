// `sagitta serve`: the server until it is told to stop. Its options are made from the table of
// settings, so that none can be missing.

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
import { EXIT_CODES, usageError } from '../failure.js';

const EXAMPLES = `
An option comes before the variable of the environment, which comes before the
default.

Examples:
  $ sagitta serve
  $ sagitta serve --port 9000 --data-dir /var/lib/sagitta
  $ SAGITTA_LOG_LEVEL=debug sagitta serve

SIGTERM and SIGINT let requests finish (--shutdown-ms at most); a second one
ends the process.`;

export function addServeCommand(program: Command): void {
  const command = program
    .command('serve')
    .description('run the server')
    .addHelpText('after', EXAMPLES);
  for (const setting of describeSettings()) {
    command.addOption(
      new Option(`${setting.option} <value>`, helpOf(setting)).helpGroup(
        setting.name in DEFAULT_LIMITS ? 'Bounds:' : 'Settings:',
      ),
    );
  }
  command.action(async (overrides: Record<string, string>) => {
    await serve(readConfig(overrides), (server) => {
      process.stdout.write(
        `Sagitta listens on ${server.url}, its docs are at ${server.url}/docs\n`,
      );
    });
  });
}

function helpOf({ help, variable, unit, default: value }: SettingDescription): string {
  const isDefault = value === '' ? '' : `, ${value}${unit === null ? '' : ` ${unit}`}`;
  return `${help} (${variable}${isDefault})`;
}

/** Throws CliError when a setting is not valid. */
export function readConfig(overrides: Record<string, string>): Config {
  try {
    return loadConfig({ env: serverEnvironment(), overrides });
  } catch (error) {
    if (error instanceof SagittaError) throw usageError(error.message);
    throw error;
  }
}

/** Resolves when a signal has stopped the server; `onReady` may still be at work then. */
export async function serve(
  config: Config,
  onReady: (server: RunningServer) => void | Promise<void>,
): Promise<void> {
  const stopping = waitForSignal();
  // Not before: the other commands have no need of the server's code and start in half the time.
  const { startServer } = await import('../../main.js');
  const server = await startServer(config);
  try {
    await Promise.race([stopping, onReady(server)]);
    await stopping;
  } finally {
    await server.stop();
  }
}

/** Of the first signal; the second one ends the process where it is. */
function waitForSignal(): Promise<void> {
  return new Promise((resolve) => {
    let isStopping = false;
    const onSignal = (): void => {
      if (isStopping) process.exit(EXIT_CODES.failure);
      isStopping = true;
      resolve();
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}
