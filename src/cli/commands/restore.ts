// `sagitta restore`: makes a data directory of a backup, which is verified first.

import type { Command } from 'commander';
import {
  addDataDirectoryOption,
  type DataDirectoryOptions,
  dataDirectoryOf,
  formatBytes,
} from '../data-directory.js';
import { CliError } from '../failure.js';
import { describeReport, verifyFolder } from './verify.js';

const EXAMPLES = `
Examples:
  $ sagitta restore /mnt/backups/monday --data-dir /var/lib/sagitta
  $ sagitta serve --data-dir /var/lib/sagitta

The directory must not be there, or be empty: what it held is yours to move
away. It appears when it is whole, and the backup stays as it is.`;

interface RestoreOptions extends DataDirectoryOptions {
  readonly verify: boolean;
  readonly json?: boolean;
}

export function addRestoreCommand(program: Command): void {
  const command = program
    .command('restore')
    .description('make a data directory of a backup')
    .argument('<backup>', 'a folder that sagitta backup or POST /v1/backups made');
  addDataDirectoryOption(command)
    .option('--no-verify', 'do not check the backup first')
    .option('--json', 'print one JSON object')
    .addHelpText('after', EXAMPLES)
    .action(async (backup: string, options: RestoreOptions) => {
      const directory = dataDirectoryOf(options);
      const { requireRestorable, restoreBackup } = await import('../../offline.js');
      await requireRestorable(backup, directory);
      if (options.verify) {
        const report = await verifyFolder(backup);
        if (report.errorCount > 0) {
          process.stderr.write(`${describeReport(report)}\n`);
          throw new CliError(
            `${backup} is broken, and was not restored; take another backup, or --no-verify to have what is left of it`,
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
