// The nodes of a cluster as processes, which can be killed, halted and started again, on NATS servers that are there.

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
  /** Where it listens and is reached. */
  readonly host: string;
  readonly port: number;
  /** A command that runs it. */
  readonly prefix: readonly string[];
  readonly dataDirectory: string;
}

export interface NodeProcessesOptions {
  readonly names: readonly string[];
  /** Each node has a folder of its own in it. */
  readonly folder: string;
  readonly settings: Readonly<Record<string, string>>;
  /** By default a free port on loopback, and a folder under the name of the node. */
  readonly placeOf?: (node: string) => NodePlace;
  /** Where a node writes its log; our own standard error by default. */
  readonly logFileOf?: (node: string) => string;
}

/** Whether a start that has failed is one that a process manager would repeat. */
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
   * Resolves when it is ready. Rejects when it ends before.
   *
   * @param settings besides those of all nodes
   * @param prefix a command that runs it, in place of that of its place
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

  /** As a process manager does: a node ends when it starts while the NATS servers start or elect a leader. */
  async startUntilReady(node: string): Promise<void> {
    const deadlineMs = performance.now() + START_MS_MAX;
    for (;;) {
      try {
        return await this.start(node);
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
    return this.names
      .filter((node) => this.isRunning(node))
      .map((node) => this.#running.get(node)!.child.pid!);
  }

  /** Where it was reached last; undefined before its first start. */
  urlOf(node: string): string | undefined {
    return this.#urls.get(node);
  }

  signal(node: string, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#running.get(node)!.child.kill(signal);
  }

  /** SIGKILL, also of one that is halted. */
  async kill(node: string): Promise<void> {
    await this.#running.get(node)?.kill();
  }

  /** SIGTERM. */
  async stop(node: string): Promise<void> {
    await this.#running.get(node)?.stop();
  }

  async killAll(): Promise<void> {
    await Promise.all(this.names.map((node) => this.kill(node)));
  }

  /** Its disk is lost. It must not be running. */
  async removeData(node: string): Promise<void> {
    await rm(this.#directoryOf(node), { recursive: true, force: true });
  }

  /** Who leads, as far as a node knows; null for nobody, and without a reply. */
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
