// `sagitta verify`: checks a data directory or a backup. Findings go to stdout, progress to stderr.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { SagittaError } from '../../common/errors.js';
import { printable } from '../../common/printable.js';
import { wireNames } from '../../common/wire-names.js';
import type { VerifyReport } from '../../offline.js';
import { dataDirectoryOf, whyNoDirectory } from '../service/data-directory.js';
import { EXIT_CODES, usageError } from '../terminal/failure.js';
import { addJsonOption, type PrintOptions, print } from '../terminal/printing.js';
import { createProgress, silentProgress } from '../terminal/progress.js';
import { formatBytes, formatCount, pluralize } from '../terminal/units.js';

const EXAMPLES = `
Examples:
  $ sagitta verify /mnt/backups/monday
  $ sagitta verify ./data --json

Reads everything and changes nothing. A directory in use by a running server
cannot be verified: create a backup and verify the backup.

Exit codes: ${EXIT_CODES.success} no damage, ${EXIT_CODES.failure} damage found, ${EXIT_CODES.usage} verification impossible.`;

export function defineVerify(command: Command): void {
  addJsonOption(command)
    .argument('[directory]', 'directory to verify (default: SAGITTA_DATA_DIR or ./data)')
    .addHelpText('after', EXAMPLES)
    .action(async (directory: string | undefined, options: PrintOptions) => {
      const report = await verifyDataDirectory(directory ?? dataDirectoryOf({}));
      const named = wireNames({ ...report, counts: wireNames(report.counts) });
      print(named, options, () => describeReport(report));
      process.exitCode = report.errorCount === 0 ? EXIT_CODES.success : EXIT_CODES.failure;
    });
}

/** Verifies a directory, with progress on stderr. Throws a usage error when it cannot be verified. */
export async function verifyDataDirectory(directory: string): Promise<VerifyReport> {
  const reason = whyNoDirectory(directory);
  if (reason !== null) throw usageError(`cannot verify ${resolve(directory)}: ${reason}`);
  const { verifyDirectory } = await import('../../offline.js');
  const progress =
    process.stderr.isTTY === true ? createProgress(`Verifying ${directory}:`) : silentProgress;
  try {
    return await verifyDirectory(directory, progress.update);
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    const advice =
      error.code === 'data_directory_locked'
        ? ' Create a backup (sagitta backup) and verify the backup.'
        : '';
    throw usageError(`cannot verify ${directory}: ${error.message}${advice}`);
  } finally {
    progress.end();
  }
}

export function describeReport(report: VerifyReport): string {
  const { counts, findings, errorCount, noteCount } = report;
  const lines = findings.map(
    ({ severity, where, what }) => `${severity}: ${printable(`${where}: ${what}`)}`,
  );
  const hiddenCount = errorCount + noteCount - findings.length;
  if (hiddenCount > 0) lines.push(`and ${formatCount(hiddenCount)} more`);
  const kind = report.isBackup ? 'backup' : 'data directory';
  const seen: readonly (readonly [number, string, string?])[] = [
    [counts.collections, 'collection'],
    [counts.segments, 'segment file'],
    [counts.rows, 'row'],
    [counts.deletions, 'deletion'],
    [counts.logRecords, 'log record'],
    [counts.idempotentReplies, 'stored reply', 'stored replies'],
    [counts.apiKeys, 'API key'],
  ];
  const seenText = seen.map(([count, noun, plural]) => pluralize(count, noun, plural)).join(', ');
  lines.push(
    `Verified the ${kind} ${report.directory}: ${seenText}; ${formatBytes(counts.bytes)} in total.`,
  );
  lines.push(
    errorCount === 0
      ? 'No damage found.'
      : `Damage found: ${pluralize(errorCount, 'error')}.${report.isBackup ? '' : ' Restore a backup with sagitta restore.'}`,
  );
  return lines.join('\n');
}
