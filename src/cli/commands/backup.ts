// `sagitta backup`: a backup of a data directory into a folder, through the server that runs on it or
// without one.

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import {
  addDataDirectoryOption,
  type DataDirectoryOptions,
  dataDirectoryOf,
  formatBytes,
} from '../data-directory.js';
import { CliError } from '../failure.js';
import { connectOperator } from '../operator.js';
import { counted } from '../progress.js';

const EXAMPLES = `
Examples:
  $ sagitta backup --to /mnt/backups/monday
  $ sagitta backup --to /mnt/backups/monday --data-dir /var/lib/sagitta
  $ sagitta verify /mnt/backups/monday
  $ sagitta restore /mnt/backups/monday --data-dir /var/lib/sagitta

A server that runs on the directory goes on meanwhile: the backup holds every
write that was acknowledged before the command. The folder appears when it is
whole. It is itself a data directory, and holds what that holds: keep it from
others' eyes.`;

interface BackupOptions extends DataDirectoryOptions {
  readonly to: string;
  readonly json?: boolean;
}

/** As the server answers. */
interface BackupReply {
  readonly directory: string;
  readonly created_at: string;
  readonly byte_length: number;
  readonly collections: number;
}

export function addBackupCommand(program: Command): void {
  const command = program
    .command('backup')
    .description('copy a data directory, while its server runs or without one')
    .requiredOption('--to <folder>', 'a folder that is not there yet, or is empty');
  addDataDirectoryOption(command)
    .option('--json', 'print one JSON object')
    .addHelpText('after', EXAMPLES)
    .action(async (options: BackupOptions) => {
      // A server has a working directory of its own.
      const made = await makeBackup(dataDirectoryOf(options), resolve(options.to));
      const text = options.json
        ? JSON.stringify(made)
        : `Backed up ${counted(made.collections, 'collection')}, ${formatBytes(made.byte_length)}, to ${made.directory}.`;
      process.stdout.write(`${text}\n`);
    });
}

async function makeBackup(dataDir: string, directory: string): Promise<BackupReply> {
  const operator = await connectOperator({ dataDir });
  if (operator !== null) {
    return operator
      .call<BackupReply>('POST', '/backups', { directory })
      .finally(() => operator.close());
  }
  if (!existsSync(join(dataDir, 'store.lmdb'))) {
    throw new CliError(`expected a data directory at ${dataDir}, found none (--data-dir)`);
  }
  // Not before: lmdb takes a tenth of a second to load, and a running server needs none of it.
  const { backupDirectory } = await import('../../offline.js');
  const made = await backupDirectory(dataDir, directory);
  return {
    directory,
    created_at: made.createdAt,
    byte_length: made.byteLength,
    collections: made.collectionCount,
  };
}
