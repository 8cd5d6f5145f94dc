// A cluster of three nodes, three NATS servers and a bucket, each of which can fail in many ways. They run on separate
// machines where that is possible (machines.ts), and on loopback otherwise.

import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NatsOperations } from '../../../src/cluster/service/nats-operations.js';
import { loadNatsConfig } from '../../../src/platform/config.js';
import { NatsServers, SYSTEM_USER } from '../nats-servers.js';
import { NodeProcesses } from '../node-processes.js';
import { CREDENTIALS, S3Server } from '../s3-server.js';
import { BLOBS_HOST, Disk, hasNamespaces, type Machine, Machines } from './machines.js';

export const NODES = ['n1', 'n2', 'n3'];
export const SERVERS = [0, 1, 2];
const NODE_PORT = 8484;
/** Small enough for several snapshots of each log, which trim it, in a run of minutes. */
const SNAPSHOT_BYTES = 4_000_000;
const POLL_MS = 100;
/** The pause before a node that has ended is started again, as by a process manager. */
const STARTS_MAX = 20;
const SYNC_MS_MAX = 600_000;
/** Lines shown of each log. */
const LOGGED_MAX = 15;
const BUCKET = 'vectors';

export class FaultyCluster {
  readonly nodes: NodeProcesses;
  readonly nats: NatsServers;
  readonly blobs: S3Server;
  /** Null without namespaces. */
  readonly machines: Machines | null;
  readonly #disks: ReadonlyMap<string, Disk>;
  readonly #folder: string;
  /** The nodes and NATS servers that a fault affects at the moment. */
  readonly disturbed = new Set<string>();
  /** Failed starts, such as those while NATS has no leader. */
  failedStartCount = 0;

  private constructor(options: {
    readonly folder: string;
    readonly nats: NatsServers;
    readonly blobs: S3Server;
    readonly machines: Machines | null;
    readonly disks: ReadonlyMap<string, Disk>;
  }) {
    const { folder, nats, blobs, machines, disks } = options;
    this.#folder = folder;
    this.nats = nats;
    this.blobs = blobs;
    this.machines = machines;
    this.#disks = disks;
    this.nodes = new NodeProcesses({
      names: NODES,
      folder,
      settings: {
        SAGITTA_CLUSTER: nats.urls.join(','),
        SAGITTA_CLUSTER_SECRET: 'known-to-the-nodes-under-test-only',
        // The servers and nodes share a network of this machine.
        SAGITTA_CLUSTER_INSECURE: 'yes',
        SAGITTA_CLUSTER_SNAPSHOT_BYTES: String(SNAPSHOT_BYTES),
        SAGITTA_BLOBS: `s3://${BUCKET}/faults?endpoint=${blobs.url}&region=${CREDENTIALS.region}`,
        AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
        AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
        SAGITTA_SEGMENT_ROWS_MAX: '4096',
        SAGITTA_THREADS: '1',
        SAGITTA_ENGINE: 'reference',
        SAGITTA_LOG_LEVEL: 'warn',
        SAGITTA_READ_RATE_MAX: '0',
        SAGITTA_WRITE_RATE_MAX: '0',
      },
      logFileOf: (node) => this.logFileOf(node),
      ...(machines === null
        ? {}
        : {
            placeOf: (node) => ({
              host: machines.of(node).host,
              port: NODE_PORT,
              prefix: machines.of(node).prefix,
              // The loss of a disk removes this directory.
              dataDirectory: join(disks.get(node)!.folder, 'data'),
            }),
          }),
    });
  }

  static async start(folder: string): Promise<FaultyCluster> {
    const names = [...NODES, ...SERVERS.map(natsName)];
    const machines = hasNamespaces ? await Machines.start(names) : null;
    const disks = new Map<string, Disk>();
    if (machines !== null) {
      for (const name of names) disks.set(name, new Disk(join(folder, `disk-${name}`)));
    }
    const places =
      machines === null
        ? undefined
        : SERVERS.map((i) => ({
            ...machines.of(natsName(i)),
            dataFolder: join(disks.get(natsName(i))!.folder, 'data'),
          }));
    const blobs = await S3Server.start(BUCKET, machines === null ? undefined : BLOBS_HOST);
    const nats = await NatsServers.start(SERVERS.length, { places });
    const cluster = new FaultyCluster({ folder, nats, blobs, machines, disks });
    await Promise.all(NODES.map((node) => cluster.startNode(node)));
    await cluster.nodes.whenLed();
    return cluster;
  }

  logFileOf(node: string): string {
    return join(this.#folder, `${node}.log`);
  }

  diskOf(name: string): Disk {
    return this.#disks.get(name)!;
  }

  machineOf(name: string): Machine {
    return this.machines!.of(name);
  }

  /** Starts a node until it is ready, as a process manager does. */
  async startNode(node: string, settings: Readonly<Record<string, string>> = {}): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const logFile = this.logFileOf(node);
      const from = sizeOf(logFile);
      try {
        return await this.nodes.start(node, { settings });
      } catch (error) {
        const said = readFrom(logFile, from);
        if (attempt === STARTS_MAX)
          throw new Error(`${node} does not start: ${said}`, { cause: error });
        this.failedStartCount++;
        await sleep(POLL_MS);
      }
    }
  }

  /** Resolves when every NATS server has everything, so that the loss of another one loses nothing. */
  async whenInSync(): Promise<void> {
    const deadlineMs = performance.now() + SYNC_MS_MAX;
    while (!(await this.nats.areInSync())) {
      if (performance.now() > deadlineMs) {
        throw new Error(`the NATS servers were not in sync within ${SYNC_MS_MAX} ms`);
      }
      await sleep(POLL_MS);
    }
  }

  /** Removes a NATS server that was replaced, as soon as the servers can do that safely. */
  async removeServer(name: string): Promise<void> {
    const deadlineMs = performance.now() + SYNC_MS_MAX;
    const { user, password } = SYSTEM_USER;
    const login = { SAGITTA_CLUSTER_USER: user, SAGITTA_CLUSTER_PASSWORD: password };
    const config = loadNatsConfig({ SAGITTA_CLUSTER: this.nats.urls.join(), ...login });
    for (;;) {
      try {
        const operations = await NatsOperations.connect(config);
        try {
          await operations.remove(name, () => {});
        } finally {
          await operations.close();
        }
        return await this.whenInSync();
      } catch (error) {
        if (performance.now() > deadlineMs) throw error;
        await sleep(POLL_MS);
      }
    }
  }

  /** Logs whose state a node has replaced by a snapshot because it was away for too long. */
  get replacedCount(): number {
    const texts = NODES.map((node) => readFrom(this.logFileOf(node), 0));
    return texts.join('\n').split('its state is replaced by a snapshot').length - 1;
  }

  /** The state of the servers and the last log lines of the nodes, for diagnosis. */
  async describe(): Promise<string[]> {
    const logged = NODES.flatMap((node) => {
      const lines = readFrom(this.logFileOf(node), 0).trim().split('\n');
      return lines.slice(-LOGGED_MAX).map((line) => `${node}: ${line}`);
    });
    return [...(await this.nats.describe()), ...logged];
  }

  async stop(): Promise<void> {
    await this.nodes.killAll();
    await this.nats.stop();
    this.blobs.resume();
    await this.blobs.close();
    for (const disk of this.#disks.values()) disk.unmount();
    this.machines?.stop();
  }
}

export function natsName(server: number): string {
  return `nats-${server}`;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function readFrom(file: string, from: number): string {
  const size = sizeOf(file);
  if (size === 0) return '';
  if (from === 0) return readFileSync(file, 'utf8');
  const bytes = Buffer.alloc(size - from);
  const descriptor = openSync(file, 'r');
  try {
    readSync(descriptor, bytes, 0, bytes.length, from);
  } finally {
    closeSync(descriptor);
  }
  return bytes.toString();
}
