// Checks that the NATS servers keep what they acknowledge. Only the monitoring port of a server shows whether it syncs
// every message before it acknowledges it. A node does not start if a server does not. Servers that do not answer are
// checked periodically, since a node must be able to start while one of three is down.

import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { GONE_MS_MIN, isSilent, type NatsReplica } from './nats-replica.js';

/** `insufficient`: acknowledged messages can be lost, as was found after the start or accepted by the settings. */
export interface Durability {
  readonly state: 'verified' | 'unverified' | 'insufficient';
  /** Tells operators what was found and what to do. */
  readonly detail: string;
}

/** With fewer, most replicas would not survive the loss of one. */
const REPLICAS_DURABLE_MIN = 3;
const ANSWER_MS_MAX = 10_000;
/** A server may have another configuration after a restart. */
const CHECK_MS = 60_000;
const CHECK_UNVERIFIED_MS = 10_000;

/** The members of `/varz` that matter here. */
interface ServerVariables {
  readonly server_id: string;
  readonly server_name: string;
  readonly version: string;
  readonly jetstream?: {
    readonly config?: { readonly sync_always?: boolean; readonly sync_interval?: number };
    readonly stats?: { readonly api?: { readonly level?: number } };
    /** Absent for a single server. Only the leader knows from which of the others it has heard. */
    readonly meta?: {
      readonly cluster_size?: number;
      readonly leader?: string;
      readonly replicas?: readonly NatsReplica[];
    };
  };
}

export type MonitorAnswer =
  | { readonly kind: 'shown'; readonly url: string; readonly variables: ServerVariables }
  | { readonly kind: 'silent'; readonly url: string; readonly reason: string };

export interface Requirements {
  /** Replicas of each log. */
  readonly replicas: number;
  /** The level of JetStream's API. */
  readonly apiLevelMin: number;
  /** The server that this node is connected to. */
  readonly connectedServerId: string | undefined;
}

export interface NatsDurabilityOptions extends Omit<Requirements, 'connectedServerId'> {
  /** The monitoring ports of all NATS servers; null if they are not configured. */
  readonly monitors: readonly string[] | null;
  readonly connectedServerId: () => string | undefined;
  readonly logger: Logger;
}

export class NatsDurability {
  readonly #options: NatsDurabilityOptions;
  #current: Durability;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  private constructor(options: NatsDurabilityOptions, current: Durability) {
    this.#options = options;
    this.#current = current;
    this.#log();
    if (options.monitors !== null) this.#checkLater(options.monitors);
  }

  /**
   * Throws `configuration_invalid` when a server that answers is not durable, and `no_leader` when half of them do not
   * answer.
   */
  static async open(options: NatsDurabilityOptions): Promise<NatsDurability> {
    const { monitors, replicas } = options;
    if (monitors === null) return new NatsDurability(options, unknownDurability(replicas));
    const answers = await askAll(monitors);
    const problems = findProblems(answers, requirements(options));
    if (problems.length > 0) throw notDurable(problems);
    const missing = tooFewAnswers(answers);
    if (missing.length > 0) {
      throw new SagittaError('no_leader', missing.join(' '), { retryAfterSeconds: 1 });
    }
    return new NatsDurability(options, durabilityOf(answers, requirements(options)));
  }

  get current(): Durability {
    return this.#current;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #checkLater(monitors: readonly string[]): void {
    if (this.#isClosed) return;
    const ms = this.#current.state === 'verified' ? CHECK_MS : CHECK_UNVERIFIED_MS;
    this.#timer = setTimeout(async () => {
      const found = durabilityOf(await askAll(monitors), requirements(this.#options));
      const isNew = found.state !== this.#current.state || found.detail !== this.#current.detail;
      this.#current = found;
      if (isNew && !this.#isClosed) this.#log();
      this.#checkLater(monitors);
    }, ms).unref();
  }

  #log(): void {
    const { logger } = this.#options;
    const { state, detail } = this.#current;
    if (state === 'verified')
      logger.info({ detail }, 'the NATS servers keep what they acknowledge');
    else if (state === 'unverified') {
      logger.warn({ detail }, 'it is unknown whether the NATS servers keep what they acknowledge');
    } else {
      logger.error({ detail }, 'the NATS servers may lose what they acknowledge');
    }
  }
}

function requirements(options: NatsDurabilityOptions): Requirements {
  return { ...options, connectedServerId: options.connectedServerId() };
}

export function durabilityOf(
  answers: readonly MonitorAnswer[],
  required: Requirements,
): Durability {
  const problems = findProblems(answers, required);
  if (problems.length > 0) return { state: 'insufficient', detail: problems.join(' ') };
  const silent = [
    ...answers.flatMap((answer) => (answer.kind === 'silent' ? silence(answer) : [])),
    ...goneMembers(answers).map(replacementAdvice),
  ];
  if (silent.length > 0) return { state: 'unverified', detail: silent.join(' ') };
  if (required.replicas < REPLICAS_DURABLE_MIN) {
    return { state: 'insufficient', detail: fewReplicas(required.replicas) };
  }
  const names = answers.map((answer) => nameOf(answer)).join(', ');
  return {
    state: 'verified',
    detail: `${names} sync every message before acknowledging it; each log has ${required.replicas} replicas.`,
  };
}

/** Sentences about what is wrong with the servers that answer, and with their number. */
export function findProblems(
  answers: readonly MonitorAnswer[],
  { replicas, apiLevelMin, connectedServerId }: Requirements,
): string[] {
  const shown = answers.filter((answer) => answer.kind === 'shown');
  const problems = shown.flatMap((answer) => problemsOfServer(answer, replicas, apiLevelMin));
  const ids = shown.map(({ variables }) => variables.server_id);
  for (const [i, answer] of shown.entries()) {
    const first = shown[ids.indexOf(ids[i]!)]!;
    if (first === answer) continue;
    problems.push(
      `${first.url} and ${answer.url} are the same server (${answer.variables.server_name}): SAGITTA_CLUSTER_MONITORS must name each server once.`,
    );
  }
  const largest = Math.max(0, ...shown.map(({ variables }) => serverCountOf(variables)));
  const present = largest - goneMembers(answers).length;
  if (present > answers.length) {
    problems.push(
      `The JetStream cluster has ${present} servers, any of which may hold a log, but SAGITTA_CLUSTER_MONITORS names ${answers.length}: name all of them.`,
    );
  }
  const isComplete = shown.length === answers.length;
  if (isComplete && connectedServerId !== undefined && !ids.includes(connectedServerId)) {
    problems.push(
      `This node is connected to the server ${connectedServerId} of SAGITTA_CLUSTER, which is not among SAGITTA_CLUSTER_MONITORS: both must name the same servers.`,
    );
  }
  return problems;
}

/** The names of members that the leader of the JetStream cluster does not hear from, and whose port did not answer. */
function goneMembers(answers: readonly MonitorAnswer[]): string[] {
  const shown = answers.flatMap((answer) => (answer.kind === 'shown' ? answer.variables : []));
  const names = shown.map(({ server_name: name }) => name);
  const leader = shown.find(({ server_name: name, jetstream }) => jetstream?.meta?.leader === name);
  const { replicas = [] } = leader?.jetstream?.meta ?? {};
  return replicas
    .filter((replica) => isSilent(replica, GONE_MS_MIN) && !names.includes(replica.name))
    .map(({ name }) => name);
}

/** What to do about a NATS server that has been silent for long. */
export function replacementAdvice(server: string): string {
  return `The NATS server ${server} is silent, and logs count it among their replicas until it is removed. Start it again; if it is gone for good, start one with another name in its place, and then: sagitta cluster nats --remove ${JSON.stringify(server)}.`;
}

function problemsOfServer(
  answer: Extract<MonitorAnswer, { kind: 'shown' }>,
  replicas: number,
  apiLevelMin: number,
): string[] {
  const { version, jetstream } = answer.variables;
  const name = nameOf(answer);
  if (jetstream?.config === undefined) {
    return [
      `${name} has no JetStream; enable it in its configuration: jetstream { store_dir: …, sync_interval: always }.`,
    ];
  }
  const problems: string[] = [];
  const { sync_always: isSyncAlways = false, sync_interval: syncNanoseconds = 0 } =
    jetstream.config;
  if (!isSyncAlways) {
    problems.push(
      `${name} syncs messages every ${syncNanoseconds / 1e9} seconds; expected sync_interval: always, since a power failure otherwise loses acknowledged messages. Set it in the jetstream block of its configuration and restart it.`,
    );
  }
  const level = jetstream.stats?.api?.level ?? 0;
  if (level < apiLevelMin) {
    problems.push(
      `${name}, version ${version}, has JetStream with API level ${level}; expected ${apiLevelMin} or later: update it to NATS 2.12 or later.`,
    );
  }
  const serverCount = serverCountOf(answer.variables);
  if (serverCount < replicas) {
    problems.push(
      `${name} is one of ${serverCount} servers of its JetStream cluster; expected at least ${replicas}, the replicas of each log (SAGITTA_CLUSTER_REPLICAS). Add servers: the cluster block of the configuration must name the routes to all of them.`,
    );
  }
  return problems;
}

function tooFewAnswers(answers: readonly MonitorAnswer[]): string[] {
  const silent = answers.filter((answer) => answer.kind === 'silent');
  if (2 * silent.length < answers.length) return [];
  return [
    ...silent.map(silence),
    `${answers.length - silent.length} of ${answers.length} monitoring ports in SAGITTA_CLUSTER_MONITORS answered; expected most of them. The option http_port, or http, of a NATS server opens one.`,
  ];
}

function silence({ url, reason }: Extract<MonitorAnswer, { kind: 'silent' }>): string {
  return `${url} could not be checked: ${reason}.`;
}

function nameOf(answer: MonitorAnswer): string {
  return answer.kind === 'shown' ? `${answer.variables.server_name} (${answer.url})` : answer.url;
}

function serverCountOf({ jetstream }: ServerVariables): number {
  return jetstream?.meta?.cluster_size ?? 1;
}

function unknownDurability(replicas: number): Durability {
  if (replicas < REPLICAS_DURABLE_MIN) {
    return { state: 'insufficient', detail: fewReplicas(replicas) };
  }
  return {
    state: 'unverified',
    detail:
      'Without sync_interval: always, NATS servers that lose power lose acknowledged messages, and a client cannot ask for that setting. Set SAGITTA_CLUSTER_MONITORS to the URLs of their monitoring ports (http://host:8222), or check that /varz on each of them shows "sync_always": true.',
  };
}

function fewReplicas(replicas: number): string {
  return `Each log has ${replicas} ${replicas === 1 ? 'replica' : 'replicas'} (SAGITTA_CLUSTER_REPLICAS), so acknowledged messages are lost with the disk of one NATS server. Expected ${REPLICAS_DURABLE_MIN} or more, except to try things out.`;
}

function notDurable(problems: readonly string[]): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    `The NATS servers may lose what they acknowledge, so this node does not start. ${problems.join(' ')}`,
  );
}

async function askAll(urls: readonly string[]): Promise<MonitorAnswer[]> {
  return Promise.all(urls.map(ask));
}

async function ask(url: string): Promise<MonitorAnswer> {
  try {
    const reply = await fetch(new URL('/varz', url), {
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
      redirect: 'error',
    });
    if (!reply.ok) return { kind: 'silent', url, reason: `/varz answered ${reply.status}` };
    const variables = (await reply.json()) as Partial<ServerVariables>;
    if (typeof variables.server_id !== 'string' || typeof variables.server_name !== 'string') {
      return { kind: 'silent', url, reason: '/varz is not that of a NATS server' };
    }
    return { kind: 'shown', url, variables: variables as ServerVariables };
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error && cause.message !== '' ? cause.message : message;
    return { kind: 'silent', url, reason };
  }
}
