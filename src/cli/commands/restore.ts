// `sagitta restore`: creates a data directory from a backup, after verifying the backup.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { CliError } from '../failure.js';
import {
  addDataDirectoryOption,
  type DataDirectoryOptions,
  dataDirectoryOf,
  whyNoDirectory,
} from '../options.js';
import { formatBytes } from '../units.js';
import { describeReport, verifyDataDirectory } from './verify.js';

const EXAMPLES = `
Examples:
  $ sagitta restore /mnt/backups/monday --data-dir /var/lib/sagitta
  $ sagitta serve --data-dir /var/lib/sagitta

The data directory must be new or empty. It appears under its name when it is
complete. The backup is not changed.`;

interface RestoreOptions extends DataDirectoryOptions {
  readonly verify: boolean;
  readonly json?: boolean;
}

export function addRestoreCommand(program: Command): void {
  const command = program
    .command('restore')
    .description('create a data directory from a backup')
    .argument('<backup>', 'directory created by sagitta backup or POST /v1/backups');
  addDataDirectoryOption(command)
    .option('--no-verify', 'skip the verification of the backup')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (backup: string, options: RestoreOptions) => {
      const directory = dataDirectoryOf(options);
      const reason = whyNoDirectory(backup);
      if (reason !== null) throw new CliError(`no backup at ${resolve(backup)}: ${reason}`);
      const { requireRestorable, restoreBackup } = await import('../../offline.js');
      await requireRestorable(backup, directory);
      if (options.verify) {
        const report = await verifyDataDirectory(backup);
        if (report.errorCount > 0) {
          process.stderr.write(`${describeReport(report)}\n`);
          throw new CliError(
            `${backup} is damaged and was not restored; use another backup, or --no-verify to restore what is left of it`,
          );
        }
      }
      const { byteLength } = await restoreBackup(backup, directory);
      const text = options.json
        ? JSON.stringify({ directory, byte_length: byteLength })
        : `Restored ${formatBytes(byteLength)} to ${directory}.`;
      process.stdout.write(`${text}\n`);
    });
}
