// The nodes of a cluster as processes that can be killed, halted and started again, on running NATS servers.

import { closeSync, openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { START_AGAIN } from '../support/server-exit.js';
import { type ServerProcess, startServerProcess } from '../support/server-process.js';

const POLL_MS = 50;
const START_MS_MAX = 180_000;

/** How one node differs from the others. */
interface NodePlace {
  /** The address where it listens and is reached. */
  readonly host: string;
  readonly port: number;
  /** A prefix for the command that runs it. */
  readonly prefix: readonly string[];
  readonly dataDirectory: string;
}

export interface NodeProcessesOptions {
  readonly names: readonly string[];
  /** Contains a folder for each node. */
  readonly folder: string;
  readonly settings: Readonly<Record<string, string>>;
  /** The place of a node; by default a free port on loopback, and a folder with its name. */
  readonly placeOf?: (node: string) => NodePlace;
  /** The file for the log of a node; standard error of the test by default. */
  readonly logFileOf?: (node: string) => string;
}

/** Whether a process manager would repeat a start that failed like this. */
export function isRepeated(error: unknown): boolean {
  return (error as Error).message.includes(`exit ${START_AGAIN}`);
}

export class NodeProcesses {
  readonly names: readonly string[];
  readonly #options: NodeProcessesOptions;
  readonly #running = new Map<string, ServerProcess>();
  readonly #urls = new Map<string, string>();

  constructor(options: NodeProcessesOptions) {
    this.names = options.names;
    this.#options = options;
  }

  /**
   * Resolves when the node is ready. Rejects when it ends before.
   *
   * @param settings added to those of all nodes
   * @param prefix replaces the one of its place
   */
  async start(
    node: string,
    options: {
      readonly settings?: Readonly<Record<string, string>>;
      readonly prefix?: readonly string[];
      readonly onSpawned?: Parameters<typeof startServerProcess>[0]['onSpawned'];
    } = {},
  ): Promise<void> {
    const { settings = {}, onSpawned } = options;
    const { placeOf, logFileOf } = this.#options;
    const place = placeOf?.(node);
    const prefix = options.prefix ?? place?.prefix;
    const log = logFileOf === undefined ? undefined : openSync(logFileOf(node), 'a');
    const server = await startServerProcess({
      dataDirectory: this.#directoryOf(node),
      settings: {
        ...this.#options.settings,
        SAGITTA_CLUSTER_NODE: node,
        ...(place === undefined
          ? {}
          : {
              SAGITTA_HOST: place.host,
              SAGITTA_PORT: String(place.port),
              SAGITTA_INSECURE: 'yes',
            }),
        ...settings,
      },
      ...(prefix === undefined ? {} : { prefix }),
      ...(onSpawned === undefined ? {} : { onSpawned }),
      ...(log === undefined ? {} : { logDescriptor: log }),
    }).finally(() => {
      if (log !== undefined) closeSync(log);
    });
    this.#running.set(node, server);
    this.#urls.set(node, server.url);
  }

  /** Repeats the start, like a process manager, since a node ends if the NATS servers are starting or electing a leader. */
  async startUntilReady(
    node: string,
    options?: Parameters<NodeProcesses['start']>[1],
  ): Promise<void> {
    const deadlineMs = performance.now() + START_MS_MAX;
    for (;;) {
      try {
        return await this.start(node, options);
      } catch (error) {
        if (!isRepeated(error) || performance.now() > deadlineMs) throw error;
        await sleep(POLL_MS);
      }
    }
  }

  isRunning(node: string): boolean {
    return this.#running.get(node)?.exit === null;
  }

  get pids(): readonly number[] {
    return this.names.filter((node) => this.isRunning(node)).map((node) => this.pidOf(node));
  }

  /** The process of a node that was started, or what its prefix has run in its place. */
  pidOf(node: string): number {
    return this.#running.get(node)!.child.pid!;
  }

  /** The last URL of the node; undefined before its first start. */
  urlOf(node: string): string | undefined {
    return this.#urls.get(node);
  }

  signal(node: string, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#running.get(node)!.child.kill(signal);
  }

  /** Sends SIGKILL, also to a halted node. */
  async kill(node: string): Promise<void> {
    await this.#running.get(node)?.kill();
  }

  /** Sends SIGTERM. */
  async stop(node: string): Promise<void> {
    await this.#running.get(node)?.stop();
  }

  async killAll(): Promise<void> {
    await Promise.all(this.names.map((node) => this.kill(node)));
  }

  /** Removes the data of a node that is not running, as if its disk were lost. */
  async removeData(node: string): Promise<void> {
    await rm(this.#directoryOf(node), { recursive: true, force: true });
  }

  /** The leader that a node knows; null for none, and without a reply. */
  async leaderSeenBy(node: string): Promise<string | null> {
    try {
      const reply = await fetch(`${this.urlOf(node)}/v1/cluster`, {
        signal: AbortSignal.timeout(1_000),
      });
      return ((await reply.json()) as { leader: string | null }).leader;
    } catch {
      return null;
    }
  }

  /** Resolves with the leader when all of these nodes know it. */
  async whenLed(nodes: readonly string[] = this.names): Promise<string> {
    for (;;) {
      const seen = new Set(await Promise.all(nodes.map((node) => this.leaderSeenBy(node))));
      const [leader] = seen;
      if (seen.size === 1 && leader != null) return leader;
      await sleep(POLL_MS);
    }
  }

  #directoryOf(node: string): string {
    return this.#options.placeOf?.(node).dataDirectory ?? join(this.#options.folder, node);
  }
}
