// Three NATS servers with JetStream on loopback, which sync every message before they acknowledge it.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { type JetStreamConnection, Readers } from '../../src/cluster/service/jetstream-stream.js';
import { freePorts } from '../support/free-ports.js';

/** Written by scripts/install-nats.mjs. */
const INSTALLED = fileURLToPath(new URL('../../../build/nats/nats-server', import.meta.url));
export const NATS_PROGRAM = existsSync(INSTALLED) ? INSTALLED : 'nats-server';
const START_MS_MAX = 120_000;
/** Servers that are busy or elect a leader answer late. */
const API_MS_MAX = 30_000;

/** Why the tests are skipped; undefined when they can run. */
export function natsMissing(): string | undefined {
  const { status, stdout } = spawnSync(NATS_PROGRAM, ['--version'], { encoding: 'utf8' });
  if (status !== 0) return 'there is no nats-server; scripts/install-nats.mjs installs it';
  const [, major, minor] = /v(\d+)\.(\d+)/.exec(stdout) ?? [];
  if (Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 12)) return undefined;
  return `${stdout.trim()} has no atomic batches; expected version 2.12 or later`;
}

/** The machine that a server runs on. */
interface NatsPlace {
  readonly host: string;
  /** A prefix for the command that runs it. */
  readonly prefix: readonly string[];
  readonly dataFolder: string;
}

interface Server {
  name: string;
  readonly configFile: string;
  place: NatsPlace;
  child: ChildProcess;
}

/** A user of the system account, for operations on the servers. Other clients need no credentials. */
export const SYSTEM_USER = { user: 'system', password: 'only-in-tests' };
const ACCOUNTS = `accounts {
  SYS { users: [{ user: ${SYSTEM_USER.user}, password: ${SYSTEM_USER.password} }] }
  TEST { jetstream: enabled, users: [{ user: test, password: test }] }
}
system_account: SYS
no_auth_user: test`;

export interface NatsServersOptions {
  /** Whether each server syncs every message before it acknowledges it; all do by default. */
  readonly isSyncAlways?: (index: number) => boolean;
  /** Added to the configuration of each server instead of accounts for the tests. */
  readonly configuration?: string;
  /** The machines; loopback by default. */
  readonly places?: readonly NatsPlace[] | undefined;
}

export class NatsServers {
  readonly urls: readonly string[];
  /** The URLs of the monitoring ports. */
  readonly monitors: readonly string[];
  readonly #folder: string;
  readonly #servers: Server[];

  private constructor(
    folder: string,
    started: readonly Omit<Server, 'child'>[],
    ports: readonly number[],
  ) {
    const urlOf = (scheme: string, i: number, port: number | undefined) =>
      `${scheme}://${started[i]!.place.host}:${port}`;
    this.#folder = folder;
    this.urls = started.map((_, i) => urlOf('nats', i, ports[i]));
    this.monitors = started.map((_, i) => urlOf('http', i, ports[2 * started.length + i]));
    this.#servers = started.map((server) => ({ ...server, child: run(server) }));
  }

  static async start(
    count = 3,
    { isSyncAlways = () => true, configuration = ACCOUNTS, places }: NatsServersOptions = {},
  ): Promise<NatsServers> {
    const folder = mkdtempSync(join(tmpdir(), 'sagitta-nats-'));
    const usual = (i: number): NatsPlace => ({
      host: '127.0.0.1',
      prefix: [],
      dataFolder: join(folder, `data-${i}`),
    });
    const placed = places ?? Array.from({ length: count }, (_, i) => usual(i));
    const ports = await freePorts(3 * count);
    const routes = placed.map(({ host }, i) => `nats://${host}:${ports[count + i]}`);
    const started = placed.map((place, i) => {
      const file = join(folder, `${i}.conf`);
      const cluster = `cluster { name: test, listen: "${place.host}:${ports[count + i]}", routes: [${routes.map((route) => `"${route}"`).join(', ')}] }`;
      writeFileSync(
        file,
        `server_name: n${i}
listen: "${place.host}:${ports[i]}"
http: "${place.host}:${ports[2 * count + i]}"
max_payload: 8MB
jetstream { store_dir: "${place.dataFolder}"${isSyncAlways(i) ? ', sync_interval: always' : ''} }
${count > 1 ? cluster : ''}
${configuration}
`,
      );
      return { name: `n${i}`, configFile: file, place };
    });
    const servers = new NatsServers(folder, started, ports);
    try {
      await (configuration === ACCOUNTS
        ? servers.#waitUntilReady(count)
        : servers.#waitUntilHealthy());
    } catch (error) {
      await servers.stop();
      throw error;
    }
    return servers;
  }

  get pids(): readonly number[] {
    return this.#servers.map(({ child }) => child.pid!);
  }

  /** A connection that keeps trying all servers. */
  async connect(): Promise<JetStreamConnection & { close(): Promise<void> }> {
    const connection = await connect({
      servers: [...this.urls],
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
      reconnectJitter: 50,
      pingInterval: 2_000,
      maxPingOut: 2,
    });
    return {
      connection,
      client: jetstream(connection, { timeout: API_MS_MAX }),
      manager: await jetstreamManager(connection, { checkAPI: false, timeout: API_MS_MAX }),
      readers: new Readers(),
      close: () => connection.close(),
    };
  }

  /** Sends SIGKILL, SIGSTOP or SIGCONT. */
  signal(index: number, signal: NodeJS.Signals): void {
    this.#servers[index]!.child.kill(signal);
  }

  /** The files with the messages of a stream on a server, which must not be running when they are changed. */
  messageFiles(index: number, stream: string): string[] {
    const folder = this.#servers[index]!.place.dataFolder;
    return (readdirSync(folder, { recursive: true }) as string[])
      .filter((path) => path.includes(`streams/${stream}/msgs/`) && path.endsWith('.blk'))
      .map((path) => join(folder, path));
  }

  /** Removes the replica of a stream from a server that is not running, as if a disk had lost a folder. */
  removeStream(index: number, stream: string): void {
    const folder = join(this.#folder, `data-${index}`);
    const found = (readdirSync(folder, { recursive: true }) as string[]).filter((path) =>
      path.endsWith(`streams/${stream}`),
    );
    for (const path of found) rmSync(join(folder, path), { recursive: true });
  }

  /** Makes a server the leader of a stream. False if it does not become the leader in time. */
  async lead(
    index: number,
    stream: string,
    { connection, manager }: JetStreamConnection,
    msMax: number,
  ): Promise<boolean> {
    const wanted = this.nameOf(index);
    const deadlineMs = performance.now() + msMax;
    for (;;) {
      const info = await manager.streams.info(stream).catch(() => null);
      if (info?.cluster?.leader === wanted) return true;
      if (performance.now() > deadlineMs) return false;
      const request = JSON.stringify({ placement: { preferred: wanted } });
      await connection
        .request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, request, { timeout: 5_000 })
        .catch(() => null);
      await sleep(500);
    }
  }

  /** Removes the replicas of streams with matching names, or of all, from a server that is not running. */
  removeData(index: number, stream?: RegExp): void {
    const folder = this.#servers[index]!.place.dataFolder;
    const names = readdirSync(folder, { recursive: true }) as string[];
    const removed =
      stream === undefined
        ? readdirSync(folder)
        : names.filter((path) => /\/streams\/[^/]+$/.test(path) && stream.test(path));
    for (const path of removed) rmSync(join(folder, path), { recursive: true, force: true });
  }

  /** The state of the streams, one line for each server. */
  async describe(): Promise<string[]> {
    const { manager, close } = await this.connect();
    try {
      const lines: string[] = [];
      for await (const { config, cluster, state } of manager.streams.list()) {
        const { messages, first_seq: first, last_seq: last } = state;
        lines.push(`${config.name}: ${JSON.stringify({ messages, first, last, ...cluster })}`);
      }
      return lines;
    } catch (error) {
      return [`the NATS servers do not tell about their streams: ${(error as Error).message}`];
    } finally {
      await close();
    }
  }

  /** Whether the replicas of all streams are up to date on every server. */
  async areInSync(): Promise<boolean> {
    const { manager, close } = await this.connect();
    try {
      for await (const { config, cluster } of manager.streams.list()) {
        const others = cluster?.replicas ?? [];
        const isWhole = others.length === config.num_replicas - 1;
        if (!isWhole || others.some(({ current, offline }) => !current || offline === true)) {
          return false;
        }
      }
      return true;
    } catch {
      return false;
    } finally {
      await close();
    }
  }

  async kill(index: number): Promise<void> {
    await kill(this.#servers[index]!.child);
  }

  nameOf(index: number): string {
    return this.#servers[index]!.name;
  }

  /** Replaces a server and its disk by an empty one with another name, and returns the name of the one that is gone. */
  async replace(index: number): Promise<string> {
    const server = this.#servers[index]!;
    await kill(server.child);
    const { name, configFile, place } = server;
    rmSync(place.dataFolder, { recursive: true, force: true });
    const [base, generation = '0'] = name.split('-');
    server.name = `${base}-${Number(generation) + 1}`;
    const configuration = readFileSync(configFile, 'utf8');
    writeFileSync(
      configFile,
      configuration.replace(/^server_name: .*/, `server_name: ${server.name}`),
    );
    server.child = run(server);
    return name;
  }

  /** Starts another server, which joins the others. */
  async add(): Promise<string> {
    const [{ configFile }] = this.#servers as [Server];
    const index = this.#servers.length;
    const name = `n${index}`;
    const place = { ...this.#servers[0]!.place, dataFolder: join(this.#folder, `data-${index}`) };
    const [client, route, monitor] = await freePorts(3);
    const ports = [client, monitor, route].map(String);
    const configuration = readFileSync(configFile, 'utf8')
      .replace(/^server_name: .*/, `server_name: ${name}`)
      .replace(/store_dir: "[^"]*"/, `store_dir: "${place.dataFolder}"`)
      .replace(
        /(^(?:listen|http): "[^"]*:|cluster \{ name: test, listen: "[^"]*:)\d+/gm,
        (_, before: string) => before + ports.shift(),
      );
    const file = join(this.#folder, `${index}.conf`);
    writeFileSync(file, configuration);
    const server = { name, configFile: file, place };
    this.#servers.push({ ...server, child: run(server) });
    return name;
  }

  async restart(index: number): Promise<void> {
    const server = this.#servers[index]!;
    await kill(server.child);
    server.child = run(server);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map(({ child }) => kill(child)));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** For servers that may refuse the test. */
  async #waitUntilHealthy(): Promise<void> {
    const deadlineMs = performance.now() + START_MS_MAX;
    const isHealthy = async (url: string) => (await fetch(`${url}/healthz`)).ok;
    for (;;) {
      const healthy = await Promise.all(this.monitors.map(isHealthy)).catch(() => [false]);
      if (!healthy.includes(false)) return;
      if (performance.now() > deadlineMs) throw new Error('the NATS servers did not get ready');
      await sleep(100);
    }
  }

  /** Waits until a stream can be created with a replica on every server, since one may be up later than the others. */
  async #waitUntilReady(count: number): Promise<void> {
    const deadlineMs = performance.now() + START_MS_MAX;
    for (;;) {
      try {
        const connection = await connect({ servers: [...this.urls], reconnect: false });
        try {
          const { streams } = await jetstreamManager(connection);
          await streams.add({ name: 'probe', num_replicas: count });
          await streams.delete('probe');
          return;
        } finally {
          await connection.close();
        }
      } catch (error) {
        if (performance.now() > deadlineMs) throw error;
        await sleep(100);
      }
    }
  }
}

function run({ configFile, place }: Omit<Server, 'child'>): ChildProcess {
  const [command, ...words] = [...place.prefix, NATS_PROGRAM, '--config', configFile];
  const child = spawn(command!, words, { stdio: 'ignore' });
  child.once('exit', (code) => {
    if (code !== null) console.error(`a NATS server ended by itself with ${code}: ${configFile}`);
  });
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}
