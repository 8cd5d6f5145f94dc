// `sagitta audit`: lists the newest audit events of a server.

import type { AuditEvent, AuditRequest } from '@sagitta/client';
import { type Command, Option } from 'commander';
import { AUDIT_OUTCOMES } from '../../common/audit.js';
import { addConnectionOptions, type ConnectionOptions, connect } from '../service/connection.js';
import { parsePast, wholeNumber } from '../terminal/option-values.js';
import { type PrintOptions, write } from '../terminal/printing.js';
import { tableForStdout } from '../terminal/table.js';

const EXAMPLES = `
Examples:
  $ sagitta audit
  $ sagitta audit --operation collection.delete --since 30d
  $ sagitta audit --outcome refused --json | jq -r .principal | sort | uniq -c`;

const LINES_DEFAULT = 50;
const LINES_MAX = 1_000_000;

interface AuditOptions
  extends ConnectionOptions,
    PrintOptions,
    Pick<AuditRequest, 'principal' | 'operation' | 'outcome' | 'target'> {
  readonly since?: string;
  readonly until?: string;
  readonly count: number;
}

export function defineAudit(command: Command): void {
  command
    .option('--principal <id>', 'only events of this principal, such as key:3kTMd9xQ7bZr2LfW')
    .option('--operation <name>', 'only this operation, or all on one kind: collection, key, …')
    .addOption(
      new Option('--outcome <outcome>', 'only events with this outcome').choices(AUDIT_OUTCOMES),
    )
    .option('--target <id>', 'only events about this collection, alias or key')
    .option('--since <when>', 'only events since a time, or of the last 7d or another duration')
    .option('--until <when>', 'only events before a time, or before a duration ago such as 1h')
    .option(
      '--count <number>',
      'the number of events to list',
      wholeNumber(1, LINES_MAX),
      LINES_DEFAULT,
    )
    .option('--json', 'print one event as JSON per line')
    .addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(async (options: AuditOptions) => {
    printEvents(await readEvents(options), options);
  });
}

async function readEvents(options: AuditOptions): Promise<AuditEvent[]> {
  const { principal, operation, outcome, target, since, until, count } = options;
  const now = Date.now();
  const request: AuditRequest = {
    ...(principal !== undefined && { principal }),
    ...(operation !== undefined && { operation }),
    ...(outcome !== undefined && { outcome }),
    ...(target !== undefined && { target }),
    ...(since !== undefined && { since: parsePast('--since', since, now) }),
    ...(until !== undefined && { until: parsePast('--until', until, now) }),
  };
  const events: AuditEvent[] = [];
  for await (const event of connect(options).audit.all(request)) {
    events.push(event);
    if (events.length === count) break;
  }
  return events;
}

function printEvents(events: readonly AuditEvent[], options: AuditOptions): void {
  if (options.json) {
    for (const event of events) write(JSON.stringify(event));
    return;
  }
  if (events.length === 0) {
    write('No events.');
    return;
  }
  const columns = [
    { title: 'time', isWhole: true },
    { title: 'operation' },
    { title: 'target' },
    { title: 'outcome' },
    { title: 'principal' },
    { title: 'client' },
  ];
  const rows = events.map(
    ({ time, operation, target, outcome, status, principal, client, via }) => [
      // Without milliseconds, which only --json prints.
      time.replace(/\.\d+Z$/, 'Z'),
      operation,
      target ?? '',
      outcome === 'succeeded' ? outcome : `${outcome} (${status})`,
      principal,
      via === null ? client : `${client} via ${via}`,
    ],
  );
  write(tableForStdout(columns, rows));
}
