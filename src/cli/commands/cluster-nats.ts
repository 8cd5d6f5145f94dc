// `sagitta cluster nats`: shows the NATS servers of a cluster, and removes one that is gone for good. It talks to the servers
// itself, so that it also helps when no node runs.

import type { Command } from 'commander';
import type { NatsReport } from '../../cluster/service/nats-operations.js';
import { loadNatsConfig } from '../../platform/config.js';
import { serverEnvironment } from '../service/connection.js';
import { CliError } from '../terminal/failure.js';
import { addJsonOption, type PrintOptions, print } from '../terminal/printing.js';
import { tableForStdout } from '../terminal/table.js';
import { formatSeconds, pluralize } from '../terminal/units.js';

const HELP = `
Needs SAGITTA_CLUSTER and the credentials of a user of the system account of
NATS, in the same variables as those of a node: SAGITTA_CLUSTER_USER and
SAGITTA_CLUSTER_PASSWORD, for example. docs/cluster.md shows the configuration.

Examples:
  $ export SAGITTA_CLUSTER=nats://nats-0:4222,nats://nats-1:4222
  $ export SAGITTA_CLUSTER_USER=admin SAGITTA_CLUSTER_PASSWORD_FILE=admin.txt
  $ sagitta cluster nats
  $ sagitta cluster nats --remove nats-2

--remove refuses to remove a server that runs, and to remove one while fewer
than most servers or replicas would remain. It ends when the other servers have
all replicas, or says what keeps them from it, such as another server that has
not answered for a minute. The exit code is 1 if anything is wrong.`;

interface NatsOptions extends PrintOptions {
  readonly remove?: string;
}

export function addNatsCommand(command: Command): void {
  const nats = command
    .command('nats')
    .description('show the NATS servers, or remove one that is gone for good')
    .option('--remove <server>', 'the name, or the id, of a server that will not come back')
    .addHelpText('after', HELP);
  addJsonOption(nats).action(async (options: NatsOptions) => {
    const { NatsOperations } = await import('../../cluster/service/nats-operations.js');
    const operations = await NatsOperations.connect(loadNatsConfig(serverEnvironment()));
    try {
      const { remove } = options;
      const report =
        remove === undefined
          ? await operations.report()
          : await operations.remove(remove, showProgress(remove));
      print(report, options, () => describe(report));
      if (report.problems.length === 0) return;
      throw new CliError(`found ${pluralize(report.problems.length, 'problem')}`);
    } finally {
      await operations.close();
    }
  });
}

/** A line on stderr whenever fewer logs are incomplete. */
function showProgress(server: string): (incompleteCount: number) => void {
  let last: number | undefined;
  return (incompleteCount) => {
    if (incompleteCount === last) return;
    last = incompleteCount;
    process.stderr.write(
      `${server} is removed; ${pluralize(incompleteCount, 'log')} still without all replicas\n`,
    );
  };
}

function describe({ servers, logCount, incomplete, problems }: NatsReport): string {
  const columns = [
    { title: 'server' },
    { title: 'state' },
    { title: 'id' },
    { title: 'version' },
    { title: 'replicas', align: 'right' } as const,
    { title: 'leads', align: 'right' } as const,
  ];
  const rows = servers.map((server) => [
    server.isLeader ? `${server.name} (leader)` : server.name,
    stateOf(server),
    server.peer ?? 'no member',
    server.version ?? '',
    String(server.logCount),
    String(server.ledCount),
  ]);
  const complete = logCount - incomplete.length;
  return [
    tableForStdout(columns, rows),
    `${complete} of ${pluralize(logCount, 'log')} have all replicas, up to date.`,
    ...problems,
  ].join('\n');
}

function stateOf({ isUp, silentSeconds }: NatsReport['servers'][number]): string {
  if (isUp) return 'up';
  return silentSeconds === null ? 'silent' : `silent for ${formatSeconds(silentSeconds)}`;
}
