// `sagitta backup`: backs up a data directory, through the server that runs on it or offline.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { connectControlClient } from '../service/control-client.js';
import {
  addDataDirectoryOption,
  type DataDirectoryOptions,
  dataDirectoryOf,
  requireDataDirectory,
} from '../service/data-directory.js';
import { formatBytes, pluralize } from '../terminal/units.js';

const EXAMPLES = `
Examples:
  $ sagitta backup --to /mnt/backups/monday
  $ sagitta backup --to /mnt/backups/monday --data-dir /var/lib/sagitta
  $ sagitta verify /mnt/backups/monday
  $ sagitta restore /mnt/backups/monday --data-dir /var/lib/sagitta

A running server keeps serving: the backup contains every write that was
acknowledged before the command started. The directory appears under its name
when it is complete. It is itself a data directory, including the API keys:
protect it like the original.`;

interface BackupOptions extends DataDirectoryOptions {
  readonly to: string;
  readonly json?: boolean;
}

/** The reply of POST /v1/backups. */
interface BackupReply {
  readonly directory: string;
  readonly created_at: string;
  readonly byte_length: number;
  readonly collections: number;
}

export function defineBackup(command: Command): void {
  command.requiredOption('--to <directory>', 'target directory, new or empty');
  addDataDirectoryOption(command)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: BackupOptions) => {
      // Absolute, because the server has its own working directory.
      const backup = await makeBackup(dataDirectoryOf(options), resolve(options.to));
      const text = options.json
        ? JSON.stringify(backup)
        : `Backed up ${pluralize(backup.collections, 'collection')} (${formatBytes(backup.byte_length)}) to ${backup.directory}.`;
      process.stdout.write(`${text}\n`);
    });
}

async function makeBackup(dataDir: string, directory: string): Promise<BackupReply> {
  const socket = await connectControlClient(dataDir);
  if (socket !== null) {
    return socket
      .call<BackupReply>('POST', '/backups', { directory })
      .finally(() => socket.close());
  }
  requireDataDirectory(dataDir);
  // Loaded only here, since the code of the database is not needed when a server runs.
  const { backupDirectory } = await import('../../offline.js');
  const made = await backupDirectory(dataDir, directory);
  return {
    directory,
    created_at: made.createdAt,
    byte_length: made.byteLength,
    collections: made.collectionCount,
  };
}
