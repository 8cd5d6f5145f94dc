// The option that names a data directory, and the check that a directory is one.

import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { CliError } from '../terminal/failure.js';

export interface DataDirectoryOptions {
  readonly dataDir?: string;
}

export function addDataDirectoryOption(command: Command): Command {
  return command.option(
    '--data-dir <path>',
    'the data directory (default: SAGITTA_DATA_DIR or ./data)',
  );
}

export function dataDirectoryOf({ dataDir }: DataDirectoryOptions): string {
  return dataDir ?? process.env.SAGITTA_DATA_DIR ?? './data';
}

/** Throws CliError unless the directory holds the data of a server. */
export function requireDataDirectory(directory: string): void {
  const hasData = existsSync(join(directory, 'journal'));
  const reason = whyNoDirectory(directory) ?? (hasData ? null : 'it contains no folder "journal"');
  if (reason === null) return;
  throw new CliError(
    `no data directory at ${resolve(directory)}: ${reason}; name one with --data-dir`,
  );
}

/** The reason why the path is not a directory; null if it is one. */
export function whyNoDirectory(directory: string): string | null {
  const found = statSync(directory, { throwIfNoEntry: false });
  if (found === undefined) return 'it does not exist';
  return found.isDirectory() ? null : 'it is a file';
}
