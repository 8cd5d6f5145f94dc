// `sagitta cluster`: shows the nodes of a cluster, drains them, moves collections, and compares replicas. `cluster-nats.ts`
// is about the NATS servers.

import { setTimeout as sleep } from 'node:timers/promises';
import type {
  Client,
  Cluster,
  CollectionDigest,
  CollectionRecord,
  NodeDigest,
  VerifiedFiles,
} from '@sagitta/client';
import type { Command } from 'commander';
import {
  addConnectionOptions,
  addReplyOptions,
  type ConnectionOptions,
  connect,
  type ReplyOptions,
} from '../service/connection.js';
import { CliError, EXIT_CODES } from '../terminal/failure.js';
import { print, write } from '../terminal/printing.js';
import { tableForStdout } from '../terminal/table.js';
import { formatBytes, formatCount, formatSeconds, pluralize } from '../terminal/units.js';
import { addNatsCommand } from './cluster-nats.js';

const EXAMPLES = `
Examples:
  $ sagitta cluster status
  $ sagitta cluster status --url http://sagitta-1:8484 --json
  $ sagitta cluster status articles
  $ sagitta cluster move articles --from sagitta-0 --to sagitta-1
  $ sagitta cluster drain sagitta-1
  $ sagitta cluster drain sagitta-1 --undo
  $ sagitta cluster verify
  $ sagitta cluster nats`;

/** Interval between polls of the state of a drain or a move. */
const POLL_INTERVAL_MS = 200;
/** Longest wait without progress of a drain. The node continues to drain after the command gives up. */
const DRAIN_STALL_MS_MAX = 60_000;

const VERIFY_HELP = `
Reads everything and changes nothing: all rows of every node, compared at the
same sequence, the logs, and the shared files. This can take long on a large
cluster. Writes may continue. Only one replica of each log is read.

Exit codes: ${EXIT_CODES.success} no difference and no damage, ${EXIT_CODES.failure} something differs or is damaged,
${EXIT_CODES.unreachable} the node could not be reached.`;

interface ComparedCollection extends CollectionDigest {
  readonly collection: string;
  /** Differences between nodes and failed comparisons. */
  readonly problems: readonly string[];
}

export function defineCluster(command: Command): void {
  command.addHelpText('after', EXAMPLES);
  addDrainCommand(command);
  addMoveCommand(command);
  addNatsCommand(command);
  const status = command
    .command('status')
    .description('list the nodes, or those that hold a collection')
    .argument('[collection]', 'the id or an alias of a collection');
  addReplyOptions(status).action(showStatus);
  const verify = command
    .command('verify')
    .description('compare the nodes, and check the logs and the shared files')
    .addHelpText('after', VERIFY_HELP);
  addReplyOptions(verify).action(verifyCluster);
}

async function showStatus(collection: string | undefined, options: ReplyOptions): Promise<void> {
  const client = connect(options);
  const cluster = await client.service.cluster();
  if (collection !== undefined && cluster.node !== null) {
    const record = await client.collections.get(collection);
    return print(record, options, () => describeHolders(record, cluster));
  }
  print(cluster, options, () => describeNodes(cluster));
}

function describeNodes(cluster: Cluster): string {
  const { node, nodes, leader, durability } = cluster;
  if (node === null) return 'The service is not a node of a cluster.';
  const columns = [
    { title: 'node' },
    { title: 'state' },
    { title: 'drain' },
    { title: 'zone' },
    { title: 'holds collections', align: 'right' } as const,
    { title: 'writes to', align: 'right' } as const,
    { title: 'version' },
    { title: 'url' },
  ];
  const rows = nodes.map(
    ({ name, state, drain, zone, held_count: held, collection_count: owned, version, url }) => [
      name,
      state,
      drain,
      zone,
      String(held),
      String(owned),
      version,
      url,
    ],
  );
  return [
    tableForStdout(columns, rows),
    leader === null
      ? `${node} knows of no leader; changes to collections wait for one.`
      : `${leader} leads: it creates, changes and deletes collections, aliases and API keys.`,
    ...(durability === null ? [] : [`Durability ${durability.state}: ${durability.detail}`]),
    ...describeState(cluster),
  ].join('\n');
}

/** Whether writes succeed, and what is wrong where. */
function describeState({ node, nodes, is_writable: isWritable, collections }: Cluster): string[] {
  const problems = nodes.flatMap(({ name, state, silent_seconds: silent, problems: found }) => [
    ...(state === 'absent'
      ? [`${name} has not been heard from for ${formatSeconds(silent)}.`]
      : []),
    ...found
      // The line about durability says it already.
      .filter(({ code }) => code !== 'durability')
      .map(
        ({ code, seconds, detail }) => `${name}: ${code} for ${formatSeconds(seconds)}. ${detail}`,
      ),
  ]);
  return [
    isWritable
      ? `Writes through ${node} succeed.`
      : `Writes through ${node} fail or wait at the moment.`,
    ...problems,
    ...collections.map(({ id, code, detail }) => `Collection "${id}": ${code}. ${detail}`),
  ];
}

function describeHolders(record: CollectionRecord, { nodes: all }: Cluster): string {
  const { id, replication_factor: factor, nodes, move } = record;
  if (nodes === undefined) return `All nodes hold "${id}".`;
  const stateOf = (name: string) => all.find((node) => node.name === name)?.state ?? 'absent';
  const rows = nodes.map((name) => [name, stateOf(name), name === move?.from ? 'leaving' : 'held']);
  if (move !== undefined) rows.push([move.to, stateOf(move.to), 'loading']);
  const columns = [{ title: 'node' }, { title: 'state' }, { title: 'collection' }];
  const factorText = `Replication factor: ${factor === undefined ? 'all nodes' : factor}.`;
  return `${tableForStdout(columns, rows)}\n${factorText}`;
}

interface MoveOptions extends ConnectionOptions {
  readonly from: string;
  readonly to: string;
}

function addMoveCommand(command: Command): void {
  const move = command
    .command('move')
    .description('move a collection from one node to another, and wait until it has arrived')
    .argument('<collection>', 'the id or an alias of a collection with a replication factor')
    .requiredOption('--from <node>', 'a node that holds the collection')
    .requiredOption('--to <node>', 'a node that does not hold it');
  addConnectionOptions(move).action(async (collection: string, options: MoveOptions) => {
    const { collections } = connect(options);
    const { from, to } = options;
    let record = await collections.move(collection, { from, to });
    while (record.move?.to === to) {
      await sleep(POLL_INTERVAL_MS);
      record = await collections.get(record.id);
    }
    if (record.nodes === undefined || record.nodes.includes(to)) {
      write(`${to} now holds "${record.id}" instead of ${from}.`);
      return;
    }
    throw new CliError(
      `"${record.id}" was not moved: ${to} stopped or was drained before it had loaded the collection, which is on ${record.nodes.join(', ')}.`,
    );
  });
}

async function verifyCluster(options: ReplyOptions): Promise<void> {
  const client = connect(options);
  const { node, nodes } = await client.service.cluster();
  if (node === null) throw new CliError('the service is not a node of a cluster');
  const collections: ComparedCollection[] = [];
  for await (const { id } of client.collections.all()) {
    collections.push(await compare(client, id));
  }
  const { files } = await client.service.verifyFiles();
  const problems = [
    ...collections.flatMap((compared) => compared.problems),
    ...files.flatMap((found) =>
      found.problem === null ? [] : [`${found.kind} ${found.name}: ${found.problem}`],
    ),
  ];
  print({ nodes, collections, files, problems }, options, () =>
    describe(collections, files, problems),
  );
  if (problems.length === 0) return;
  throw new CliError(
    `the cluster is inconsistent or damaged: found ${pluralize(problems.length, 'problem')}`,
  );
}

async function compare(client: Client, collection: string): Promise<ComparedCollection> {
  const found = await client.collections.digest(collection, { all_nodes: true });
  const { nodes = [], sequence } = found;
  const where = `collection "${collection}" at sequence ${sequence}`;
  const problems = nodes.flatMap(({ node, problem }) =>
    problem === undefined ? [] : [`${where}, node ${node}: ${problem}`],
  );
  const digests = new Map<string, NodeDigest[]>();
  for (const entry of nodes) {
    if (entry.digest === undefined) continue;
    digests.set(entry.digest, [...(digests.get(entry.digest) ?? []), entry]);
  }
  if (digests.size > 1) {
    const groups = [...digests].map(
      ([digest, alike]) =>
        `${alike.map(({ node }) => node).join(', ')}: ${pluralize(alike[0]!.vector_count ?? 0, 'vector')} with the digest ${digest}`,
    );
    problems.push(`${where} differs between nodes; ${groups.join('; ')}`);
  }
  return { collection, ...found, problems };
}

function describe(
  collections: readonly ComparedCollection[],
  files: readonly VerifiedFiles[],
  problems: readonly string[],
): string {
  const tables: string[] = [];
  if (collections.length > 0) {
    const columns = [
      { title: 'collection' },
      { title: 'sequence', align: 'right' } as const,
      { title: 'vectors', align: 'right' } as const,
      { title: 'nodes', align: 'right' } as const,
      { title: 'digest' },
      { title: 'result' },
    ];
    const rows = collections.map((compared) => [
      compared.collection,
      String(compared.sequence),
      formatCount(compared.vector_count),
      String(compared.nodes?.length ?? 0),
      compared.digest.slice(0, DIGITS_SHOWN),
      compared.problems.length === 0 ? 'identical' : 'see below',
    ]);
    tables.push(tableForStdout(columns, rows));
  }
  const columns = [
    { title: 'shared' },
    { title: 'name' },
    { title: 'count', align: 'right' } as const,
    { title: 'size', align: 'right' } as const,
    { title: 'result' },
  ];
  const rows = files.map(({ kind, name, count, byte_count, problem }) => [
    kind,
    name,
    formatCount(count),
    formatBytes(byte_count),
    problem === null ? 'intact' : 'see below',
  ]);
  tables.push(tableForStdout(columns, rows));
  const end = problems.length === 0 ? ['No difference and no damage found.'] : problems;
  return [...tables, end.join('\n')].join('\n\n');
}

/** Digits of a digest in the table, enough to compare digests by eye. */
const DIGITS_SHOWN = 16;

interface DrainOptions extends ConnectionOptions {
  readonly undo?: boolean;
}

function addDrainCommand(command: Command): void {
  const drain = command
    .command('drain')
    .description('let other nodes take over from a node, and wait until it can be stopped')
    .argument('<node>', 'the name of the node')
    .option('--undo', 'let the node take over writes and collections again');
  addConnectionOptions(drain).action(async (name: string, options: DrainOptions) => {
    const client = connect(options);
    if (options.undo) {
      await client.service.undrain(name);
      write(`${name} can take over writes and collections again.`);
      return;
    }
    await client.service.drain(name);
    if (await waitUntilDrained(client, name)) {
      write(
        `${name} is drained and can be stopped. To undo this, run sagitta cluster drain ${name} --undo.`,
      );
      return;
    }
    throw new CliError(
      `${name} is not drained yet, because other nodes have not taken over all of its writes and collections; sagitta cluster status shows when they have.`,
    );
  });
}

async function waitUntilDrained(client: Client, name: string): Promise<boolean> {
  let remaining = Number.POSITIVE_INFINITY;
  let deadlineMs = 0;
  for (;;) {
    const { nodes } = await client.service.cluster();
    // A node that is gone has nothing to hand over.
    const found = nodes.find((node) => node.name === name);
    if (found === undefined || found.state === 'absent' || found.drain === 'drained') return true;
    const held = found.collection_count + found.held_count;
    if (held < remaining) {
      remaining = held;
      deadlineMs = performance.now() + DRAIN_STALL_MS_MAX;
    }
    if (performance.now() > deadlineMs) return false;
    await sleep(POLL_INTERVAL_MS);
  }
}
