// `sagitta verify`: checks a data directory or a backup and names what is broken. Findings are the
// answer and go to stdout, progress to stderr.

import type { Command } from 'commander';
import { SagittaError } from '../../common/errors.js';
import type { VerifyReport } from '../../offline.js';
import { dataDirectoryOf, formatBytes } from '../data-directory.js';
import { EXIT_CODES, usageError } from '../failure.js';
import { counted, createProgress, formatCount, silentProgress } from '../progress.js';
import { printable } from '../table.js';

const EXAMPLES = `
Examples:
  $ sagitta verify /mnt/backups/monday
  $ sagitta verify ./data --json

Reads everything and changes nothing. A directory whose server runs is not
looked at: make a backup and verify that, which is as good.

Exit codes: ${EXIT_CODES.success} nothing is broken, ${EXIT_CODES.failure}
something is, ${EXIT_CODES.usage} it could not be looked at.`;

interface VerifyOptions {
  readonly json?: boolean;
}

export function addVerifyCommand(program: Command): void {
  program
    .command('verify')
    .description('check every checksum and invariant of a data directory or a backup')
    .argument('[folder]', 'else SAGITTA_DATA_DIR, else ./data')
    .option('--json', 'print one JSON object')
    .addHelpText('after', EXAMPLES)
    .action(async (folder: string | undefined, options: VerifyOptions) => {
      const report = await verifyFolder(folder ?? dataDirectoryOf({}));
      process.stdout.write(`${options.json ? jsonOf(report) : describeReport(report)}\n`);
      process.exitCode = report.errorCount === 0 ? EXIT_CODES.success : EXIT_CODES.failure;
    });
}

/** With progress on stderr. Throws a usage error for what cannot be looked at. */
export async function verifyFolder(folder: string): Promise<VerifyReport> {
  const { verifyDirectory } = await import('../../offline.js');
  const progress =
    process.stderr.isTTY === true ? createProgress(`Verifying ${folder}:`) : silentProgress;
  try {
    return await verifyDirectory(folder, progress.update);
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    const advice =
      error.code === 'data_directory_locked'
        ? ' Make a backup of it (sagitta backup), and verify that.'
        : '';
    throw usageError(`not verified: ${error.message}${advice}`);
  } finally {
    progress.end();
  }
}

/** With the names as the API has them. */
function jsonOf({ isBackup, errorCount, noteCount, counts, ...rest }: VerifyReport): string {
  const { logRecords, idempotentReplies, apiKeys, ...others } = counts;
  const report = {
    is_backup: isBackup,
    error_count: errorCount,
    note_count: noteCount,
    counts: {
      ...others,
      log_records: logRecords,
      idempotent_replies: idempotentReplies,
      api_keys: apiKeys,
    },
    ...rest,
  };
  return JSON.stringify(report, null, 2);
}

export function describeReport(report: VerifyReport): string {
  const { counts, findings, errorCount, noteCount } = report;
  const lines = findings.map(
    ({ severity, where, what }) => `${severity}: ${printable(`${where}: ${what}`)}`,
  );
  const hiddenCount = errorCount + noteCount - findings.length;
  if (hiddenCount > 0) lines.push(`and ${formatCount(hiddenCount)} more`);
  const kind = report.isBackup ? 'backup' : 'data directory';
  const seen = [
    [counts.collections, 'collection'],
    [counts.segments, 'segment file'],
    [counts.rows, 'row'],
    [counts.deletions, 'deletion'],
    [counts.logRecords, 'log record'],
    [counts.idempotentReplies, 'kept answer'],
    [counts.apiKeys, 'API key'],
  ] as const;
  const seenText = seen.map(([count, what]) => counted(count, what)).join(', ');
  lines.push(`The ${kind} ${report.directory}: ${seenText}; ${formatBytes(counts.bytes)} of rows.`);
  lines.push(
    errorCount === 0
      ? 'Nothing is broken.'
      : `${counted(errorCount, 'finding')}: something is broken.${report.isBackup ? '' : ' A backup can be restored: sagitta restore.'}`,
  );
  return lines.join('\n');
}
