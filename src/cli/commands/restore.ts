// `sagitta restore`: creates a data directory from a backup, or from backups of the nodes of a cluster, after verifying
// them.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { RestoredBackups } from '../../offline.js';
import {
  addDataDirectoryOption,
  type DataDirectoryOptions,
  dataDirectoryOf,
  whyNoDirectory,
} from '../service/data-directory.js';
import { CliError } from '../terminal/failure.js';
import { formatBytes } from '../terminal/units.js';
import { describeReport, verifyDataDirectory } from './verify.js';

const EXAMPLES = `
Examples:
  $ sagitta restore /mnt/backups/monday --data-dir /var/lib/sagitta
  $ sagitta serve --data-dir /var/lib/sagitta
  $ sagitta restore /mnt/node-0 /mnt/node-1 --data-dir /var/lib/sagitta

The data directory must be new or empty. It appears under its name when it is
complete. The backup is not changed. Backups of several nodes of a cluster
become one data directory with all collections, each from the newest backup that
holds its rows.`;

interface RestoreOptions extends DataDirectoryOptions {
  readonly verify: boolean;
  readonly json?: boolean;
}

export function defineRestore(command: Command): void {
  command.argument(
    '<backups...>',
    'directory created by sagitta backup or POST /v1/backups; several must be from nodes of one cluster',
  );
  addDataDirectoryOption(command)
    .option('--no-verify', 'skip the verification of the backup')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (backups: readonly string[], options: RestoreOptions) => {
      const directory = dataDirectoryOf(options);
      const { requireRestorable, restoreBackups } = await import('../../offline.js');
      for (const backup of backups) {
        const reason = whyNoDirectory(backup);
        if (reason !== null) throw new CliError(`no backup at ${resolve(backup)}: ${reason}`);
        await requireRestorable(backup, directory);
      }
      if (options.verify) for (const backup of backups) await requireIntact(backup);
      const restored = await restoreBackups(backups, directory);
      process.stdout.write(
        options.json ? toJson(restored, directory) : toText(restored, directory),
      );
    });
}

async function requireIntact(backup: string): Promise<void> {
  const report = await verifyDataDirectory(backup);
  if (report.errorCount === 0) return;
  process.stderr.write(`${describeReport(report)}\n`);
  throw new CliError(
    `${backup} is damaged and was not restored; use another backup, or --no-verify to restore what is readable`,
  );
}

function toJson({ byteLength, added, missing }: RestoredBackups, directory: string): string {
  return `${JSON.stringify({ directory, byte_length: byteLength, added, missing })}\n`;
}

function toText({ byteLength, added, missing }: RestoredBackups, directory: string): string {
  const lines = [
    `Restored ${formatBytes(byteLength)} to ${directory}.`,
    ...added.map(({ id, backup }) => `The collection "${id}" is from ${backup}.`),
    ...missing.map(
      (id) =>
        `None of the backups holds the rows of the collection "${id}"; restore the backups of all nodes together.`,
    ),
  ];
  return `${lines.join('\n')}\n`;
}
