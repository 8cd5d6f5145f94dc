// Operations on the NATS servers themselves, for operators: which servers there are, what they store, and the removal of one
// that is gone for good. They need a user of the system account, which the nodes do not have, and no running node.

import { setTimeout as sleep } from 'node:timers/promises';
import { type NatsConnection, NoRespondersError } from '@nats-io/nats-core';
import { SagittaError } from '../../common/errors.js';
import { toSeconds } from '../../common/problems.js';
import type { NatsConfig } from '../../platform/config.js';
import { connectNats, natsLoginOf } from './nats-login.js';
import { GONE_MS_MIN, isSilent, type NatsReplica, silentMsOf } from './nats-replica.js';

interface NatsServer {
  readonly name: string;
  /** Identifies it among the members of the JetStream cluster; null if it is none. */
  readonly peer: string | null;
  /** Whether it answers. */
  readonly isUp: boolean;
  /** How long the leader of the JetStream cluster has not heard from it; null if unknown, and for servers that answer. */
  readonly silentSeconds: number | null;
  /** Null for a server that does not answer. */
  readonly version: string | null;
  /** Whether it syncs every message before it acknowledges it; null for a server that does not answer. */
  readonly isSyncAlways: boolean | null;
  /** Whether it leads the JetStream cluster, without which no log can be created or moved. */
  readonly isLeader: boolean;
  /** The number of logs of which it has a replica, and of those that it leads. */
  readonly logCount: number;
  readonly ledCount: number;
}

/** A log with replicas that are missing, silent or behind. */
interface IncompleteLog {
  readonly name: string;
  /** The number of replicas that it should have. */
  readonly replicas: number;
  /** The servers with a replica that is up to date. */
  readonly current: readonly string[];
  /** The servers whose replica is silent or behind. */
  readonly late: readonly string[];
}

export interface NatsReport {
  readonly servers: readonly NatsServer[];
  /** Logs of all clusters and applications on these servers. */
  readonly logCount: number;
  readonly incomplete: readonly IncompleteLog[];
  /** Sentences: what was found, and what to do. */
  readonly problems: readonly string[];
}

/** The members of the replies to `$SYS.REQ.SERVER.PING.JSZ` that matter here. */
interface ServerReply {
  readonly server: { readonly name: string; readonly ver: string };
  readonly data?: {
    readonly config?: { readonly sync_always?: boolean };
    /** `peer` is the id of the leader. */
    readonly meta_cluster?: Group & { readonly peer?: string };
    readonly account_details?: readonly {
      readonly name: string;
      readonly stream_detail?: readonly {
        readonly name: string;
        readonly cluster?: Group;
        readonly config?: { readonly num_replicas?: number };
      }[];
    }[];
  };
}

/** Servers that replicate something. The replicas do not include the server that replies. */
interface Group {
  readonly leader?: string;
  readonly replicas?: readonly Replica[];
}

interface Replica extends NatsReplica {
  readonly peer: string;
}

const STATUS = '$SYS.REQ.SERVER.PING.JSZ';
const REMOVE = '$JS.API.SERVER.REMOVE';
/** Servers answer one by one; the last one is known by the silence after it. */
const STATUS_MS_MAX = 5_000;
const LAST_REPLY_MS = 700;
const REMOVE_MS_MAX = 10_000;
const POLL_MS = 500;
/** A leader hears from an idle replica at least every two seconds. */
const SILENT_MS_MAX = 5_000;
/** A removal that nothing hinders, but of which nothing has changed for this long, is not waited for any longer. */
const UNCHANGED_MS_MAX = 1_800_000;

export class NatsOperations {
  readonly #connection: NatsConnection;

  private constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  /** Throws `configuration_invalid`, and `no_leader` when no server answers. */
  static async connect(config: NatsConfig): Promise<NatsOperations> {
    const { cluster } = config;
    if (cluster === null) {
      throw invalid('SAGITTA_CLUSTER is not set; expected the URLs of the NATS servers.');
    }
    const connection = await connectNats(cluster, natsLoginOf(config));
    const operations = new NatsOperations(connection);
    const replies = await operations.#ask();
    if (replies.length > 0) return operations;
    await connection.close();
    throw invalid(
      'The NATS servers do not answer requests about themselves: expected SAGITTA_CLUSTER_USER and SAGITTA_CLUSTER_PASSWORD, or the other credentials, of a user of the system account (docs/cluster.md), not those of the nodes.',
    );
  }

  async report(): Promise<NatsReport> {
    return reportOf(await this.#ask());
  }

  /**
   * Removes a server that is gone for good. JetStream moves its replicas to other servers. Resolves when all logs are
   * complete again; `onProgress` gets the number of logs that are not. Throws `invalid_request` if that would be
   * dangerous, and `no_leader` if the removal does not go on, for example because another server is down.
   *
   * @param server its name, or its id if no server knows its name any more
   */
  async remove(server: string, onProgress: (incompleteCount: number) => void): Promise<NatsReport> {
    const replies = await this.#ask();
    const members = membersOf(replies).filter(({ peer }) => peer !== null);
    const found = members.find(({ name, peer }) => name === server || peer === server);
    requireRemovable(server, found, members, logsOf(replies));
    const request = JSON.stringify({ peer: found.name, peer_id: found.peer });
    const reply = await this.#connection.request(REMOVE, request, { timeout: REMOVE_MS_MAX });
    const { error } = reply.json<{ error?: { description?: string } }>();
    if (error !== undefined) {
      const { description = 'an error without a description' } = error;
      throw refused(`NATS did not remove the server ${found.name}: ${description}.`);
    }
    const removal = new Removal(found);
    for (;;) {
      const report = await this.report();
      if (removal.isComplete(report, performance.now())) return report;
      onProgress(report.incomplete.length);
      await sleep(POLL_MS);
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** The replies of all servers that answer; none if the user may not ask. */
  async #ask(): Promise<ServerReply[]> {
    const options = { accounts: true, streams: true, config: true };
    const found: ServerReply[] = [];
    try {
      const replies = await this.#connection.requestMany(STATUS, JSON.stringify(options), {
        strategy: 'stall',
        maxWait: STATUS_MS_MAX,
        stall: LAST_REPLY_MS,
      });
      for await (const message of replies) found.push(message.json<ServerReply>());
    } catch (error) {
      // The servers answer only users of the system account.
      if (!(error instanceof NoRespondersError)) throw error;
    }
    return found;
  }
}

/** A removal that NATS has accepted. */
export class Removal {
  readonly #name: string;
  readonly #peer: string | null;
  /** The last state that was found, and the time since which it has not changed. */
  #found = '';
  #foundAtMs = 0;
  /** Since when a server is down, or none leads; null while nothing hinders the removal. */
  #hinderedAtMs: number | null = null;

  constructor({ name, peer }: Pick<NatsServer, 'name' | 'peer'>) {
    this.#name = name;
    this.#peer = peer;
  }

  /** Whether all logs have all their replicas without the server. Throws `no_leader` if the removal does not go on. */
  isComplete(report: NatsReport, nowMs: number): boolean {
    const { servers, incomplete, problems } = report;
    const others = servers.filter(({ peer }) => peer === null || peer !== this.#peer);
    const isGone = others.length > 0 && others.length === servers.length;
    if (isGone && incomplete.length === 0) return true;
    const isHindered =
      others.some(({ isUp }) => !isUp) || !servers.some(({ isLeader }) => isLeader);
    this.#hinderedAtMs = isHindered ? (this.#hinderedAtMs ?? nowMs) : null;
    const found = JSON.stringify([isGone, incomplete]);
    if (found !== this.#found) {
      this.#found = found;
      this.#foundAtMs = nowMs;
    }
    const isStuck =
      nowMs - (this.#hinderedAtMs ?? nowMs) > GONE_MS_MIN ||
      nowMs - this.#foundAtMs > UNCHANGED_MS_MAX;
    if (!isStuck) return false;
    const missing = servers.length === 0 ? 'No NATS server answers.' : problems.join(' ');
    const name = JSON.stringify(this.#name);
    throw new SagittaError(
      'no_leader',
      isGone
        ? `${this.#name} is removed, but logs lack replicas. ${missing} The servers add the replicas by themselves once that is repaired; sagitta cluster nats shows when they are complete.`
        : `${this.#name} is not removed yet. ${missing} Once that is repaired, run this again: sagitta cluster nats --remove ${name}`,
    );
  }
}

/** What the replies of the servers say. */
function reportOf(replies: readonly ServerReply[]): NatsReport {
  const logs = logsOf(replies);
  const incomplete = logs.filter(
    ({ replicas, current, late }) => current.length < replicas || late.length > 0,
  );
  const servers = membersOf(replies).map((server): NatsServer => {
    const reply = replies.find((each) => each.server.name === server.name);
    const stored = logs.filter(({ current, late }) => [...current, ...late].includes(server.name));
    return {
      ...server,
      version: reply?.server.ver ?? null,
      isSyncAlways: reply === undefined ? null : (reply.data?.config?.sync_always ?? false),
      logCount: stored.length,
      ledCount: logs.filter(({ leader }) => leader === server.name).length,
    };
  });
  const problems = problemsOf(servers, logs, incomplete);
  return {
    servers,
    logCount: logs.length,
    incomplete: incomplete.map(({ name, replicas, current, late }) => ({
      name,
      replicas,
      current,
      late,
    })),
    problems,
  };
}

interface Log extends IncompleteLog {
  /** Null while there is none. */
  readonly leader: string | null;
}

/** Each log as its leader sees it, or without a leader as the servers that store it do. */
function logsOf(replies: readonly ServerReply[]): Log[] {
  const logs = new Map<string, Log>();
  for (const { server, data } of replies) {
    for (const { name: account, stream_detail: streams = [] } of data?.account_details ?? []) {
      for (const { name, cluster = { leader: server.name }, config } of streams) {
        const key = `${account} ${name}`;
        const { num_replicas: replicas = 1 } = config ?? {};
        const others = cluster.replicas ?? [];
        if (cluster.leader === server.name) {
          const [current, late] = [false, true].map((wanted) =>
            others.filter((each) => isLate(each) === wanted).map((each) => each.name),
          ) as [string[], string[]];
          const leader = server.name;
          logs.set(key, { name, leader, replicas, current: [leader, ...current], late });
        } else if (!logs.has(key)) {
          const late = [server.name, ...others.map((each) => each.name)];
          logs.set(key, { name, leader: null, replicas, current: [], late });
        }
      }
    }
  }
  return [...logs.values()];
}

function isLate(replica: Replica): boolean {
  return !replica.current || isSilent(replica, SILENT_MS_MAX);
}

type FoundMember = Pick<NatsServer, 'name' | 'peer' | 'isUp' | 'silentSeconds' | 'isLeader'>;

/**
 * The members of the JetStream cluster, as its leader or any member sees them, and other servers that answer, in the order of
 * their names.
 */
function membersOf(replies: readonly ServerReply[]): FoundMember[] {
  const leader = replies.find(({ server, data }) => data?.meta_cluster?.leader === server.name);
  const seen = (leader ?? replies.find(({ data }) => data?.meta_cluster))?.data?.meta_cluster;
  const names = new Set(replies.map(({ server }) => server.name));
  const ids = idsOf(replies);
  const up = [...names].map(
    (name): FoundMember => ({
      name,
      peer: ids.get(name) ?? null,
      isUp: true,
      silentSeconds: null,
      isLeader: name === leader?.server.name,
    }),
  );
  const silent = (seen?.replicas ?? []).filter(({ name }) => !names.has(name));
  const all = [
    ...up,
    ...silent.map((replica): FoundMember => {
      const { name, peer, active } = replica;
      // A leader that has not heard from a server since its election does not know how long that has been silent.
      const seconds = leader === undefined || active === 0 ? null : toSeconds(silentMsOf(replica));
      return { name, peer, isUp: false, silentSeconds: seconds, isLeader: false };
    }),
  ];
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The ids of members by name, as any server knows them. */
function idsOf(replies: readonly ServerReply[]): ReadonlyMap<string, string> {
  const ids = new Map<string, string>();
  for (const { data } of replies) {
    const { leader, peer, replicas = [] } = data?.meta_cluster ?? {};
    if (leader !== undefined && peer !== undefined) ids.set(leader, peer);
    for (const replica of replicas) ids.set(replica.name, replica.peer);
  }
  return ids;
}

function problemsOf(
  servers: readonly NatsServer[],
  logs: readonly Log[],
  incomplete: readonly IncompleteLog[],
): string[] {
  const members = servers.filter(({ peer }) => peer !== null);
  const down = members.filter(({ isUp }) => !isUp);
  const problems = down.map(({ name, silentSeconds: seconds }) => {
    const since = seconds === null ? '' : ` (for ${Math.round(seconds)} s)`;
    return `${name} does not answer${since}, and counts as a member and as a replica until it is removed. Start it again; or, if it is gone for good, start a server with another name in its place, and then: sagitta cluster nats --remove ${JSON.stringify(name)}`;
  });
  if (!servers.some(({ isLeader }) => isLeader)) {
    problems.push(
      `The JetStream cluster has no leader: ${members.length - down.length} of its ${members.length} members answer, and more than half are needed. No log can be created or moved; start the other servers.`,
    );
  }
  for (const { name, isUp, isSyncAlways } of servers) {
    if (!isUp || isSyncAlways === true) continue;
    problems.push(
      `${name} does not sync messages before it acknowledges them; expected sync_interval: always in the jetstream block of its configuration.`,
    );
  }
  const [first] = incomplete;
  if (first !== undefined) {
    const late = first.late.length === 0 ? 'others are missing' : `late: ${first.late.join(', ')}`;
    problems.push(
      `${incomplete.length} of ${logs.length} logs do not have all their replicas up to date: ${first.name} has ${first.current.length} of ${first.replicas} (${late}).`,
    );
  }
  return problems;
}

/** Throws `invalid_request` unless the removal of a server leaves every log and the cluster with a majority. */
function requireRemovable(
  asked: string,
  found: FoundMember | undefined,
  members: readonly FoundMember[],
  logs: readonly Log[],
): asserts found is FoundMember {
  if (found === undefined) {
    throw refused(
      `No server of the JetStream cluster is named ${JSON.stringify(asked)}; expected one of ${members.map(({ name }) => name).join(', ')}.`,
    );
  }
  const { name } = found;
  if (found.isUp) {
    throw refused(
      `${name} is running. A server that is removed while it runs may come back: stop it first.`,
    );
  }
  const up = members.filter(({ isUp }) => isUp);
  if (!members.some(({ isLeader }) => isLeader) && 2 * up.length > members.length) {
    throw refused('The JetStream cluster is electing a leader: try again in a few seconds.');
  }
  if (2 * up.length <= members.length) {
    throw refused(
      `Only ${up.length} of the ${members.length} members of the JetStream cluster answer: with fewer than a majority, a removal can lose acknowledged messages. Start more of them first.`,
    );
  }
  const wide = Math.max(0, ...logs.map(({ replicas }) => replicas));
  if (up.length < wide) {
    throw refused(
      `${up.length} servers would remain, and logs have ${wide} replicas: start another server first, which takes over those of ${name}.`,
    );
  }
  const endangered = logs.find(({ late }) => late.some((server) => server !== name));
  if (endangered !== undefined) {
    const others = endangered.late.filter((server) => server !== name);
    throw refused(
      `The log ${endangered.name} has replicas that are behind on ${others.join(', ')}: wait until they are current, since a removal now could lose acknowledged messages.`,
    );
  }
}

function refused(message: string): SagittaError {
  return new SagittaError('invalid_request', message);
}

function invalid(message: string): SagittaError {
  return new SagittaError('configuration_invalid', message);
}
