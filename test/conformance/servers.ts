// The servers that cases run against: real servers in this process, each with a data directory that is removed with it.
// A server starts when a case first needs it.

import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Limits } from '../../src/common/limits.js';
import { type RunningServer, startServer } from '../../src/main.js';
import { type Config, loadConfig } from '../../src/platform/config.js';
import { type Exchange, exchange, type Incoming, type Outgoing } from './exchange.js';

interface Profile {
  readonly engine?: Config['engine'];
  readonly defaultCollection?: string;
  readonly limits?: Partial<Limits>;
  /** Whether a directory for backups is configured. */
  readonly hasBackups?: boolean;
  /** Origins of web pages that may use the server. */
  readonly corsOrigins?: readonly string[];
  /** Whether each case gets a new server. */
  readonly isForOneCase?: boolean;
}

const PROFILES = {
  /** The defaults, with the reference engine. */
  usual: {},
  /** With the wasm engine. */
  wasm: { engine: 'wasm' },
  /** With the fastest engine of this machine. */
  auto: { engine: 'auto' },
  /** Another server, with its own secret and default collection, and with small segments. */
  second: { defaultCollection: 'the-default', limits: { segmentRowsMax: 64 } },
  /** Requires credentials, because its cases create API keys. */
  guarded: { hasBackups: true, isForOneCase: true },
  /** Admits web pages of one other origin. */
  pages: { corsOrigins: ['https://app.example.org'] },
  /** With low rate limits. */
  throttled: {
    isForOneCase: true,
    limits: { readRateMax: 0.05, readBurstMax: 2, writeRateMax: 0.05, writeBurstMax: 4 },
  },
  /** With a short limit on the time of a request. */
  impatient: { limits: { requestMsMax: 2_500 } },
  /** With limits so low that a case reaches them with a few lines. */
  small: {
    limits: {
      dimensionMax: 4,
      bodyBytesMax: 4096,
      batchRowsMax: 4,
      batchQueriesMax: 3,
      pageLimitMax: 5,
      pageLimitDefault: 2,
      topKMax: 6,
      topKDefault: 3,
      filterNodesMax: 4,
      filterDepthMax: 2,
      filterValuesMax: 3,
      filterPathCharactersMax: 16,
      filterPatternCharactersMax: 8,
      filterPatternInstructionsMax: 16,
      filterPatternsMax: 1,
      filterPolygonPointsMax: 4,
      vectorIdBytesMax: 26,
      metadataBytesMax: 64,
      metadataDepthMax: 2,
      metadataColumnsMax: 2,
      segmentRowsMax: 64,
      collectionsMax: 3,
      queuedQueriesMax: 2,
      retentionMs: 5_000,
      idempotencyMs: 5_000,
      idempotencyKeyCharactersMax: 16,
      descriptionCharactersMax: 16,
      labelsMax: 2,
      labelCharactersMax: 8,
    },
  },
} as const satisfies Record<string, Profile>;

export type ProfileName = keyof typeof PROFILES;

export interface TestServer {
  readonly isForOneCase: boolean;
  send(outgoing: Outgoing): Promise<Incoming>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server with a data directory. Conformance tests of clusters pass their own function. */
export type StartServer = (config: Config) => Promise<RunningServer>;

export class Servers {
  readonly #start: StartServer;
  readonly #exchange: Exchange;
  readonly #running = new Map<ProfileName, Promise<TestServer>>();

  constructor(start: StartServer = startServer, send: Exchange = exchange) {
    this.#start = start;
    this.#exchange = send;
  }

  get(name: ProfileName): Promise<TestServer> {
    let server = this.#running.get(name);
    if (server === undefined) {
      server = startTestServer(PROFILES[name], this.#start, this.#exchange);
      this.#running.set(name, server);
    }
    return server;
  }

  /** Stops the servers that serve a single case only. */
  async endCase(): Promise<void> {
    for (const [name, { isForOneCase = false }] of Object.entries<Profile>(PROFILES)) {
      const server = this.#running.get(name as ProfileName);
      if (!isForOneCase || server === undefined) continue;
      this.#running.delete(name as ProfileName);
      await (await server).stop();
    }
  }

  async stop(): Promise<void> {
    for (const server of this.#running.values()) await (await server).stop();
  }
}

/** Closes idle connections before the server does; a request sent at that very moment would fail. */
function createAgent(): Agent {
  return new Agent({ keepAlive: true, timeout: 15_000 });
}

export async function startTestServer(
  profile: Profile,
  startOne: StartServer = startServer,
  send: Exchange = exchange,
): Promise<TestServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sagitta-conformance-'));
  const backupDir = `${dataDir}-backups`;
  const usual = loadConfig({ env: {} });
  const config: Config = {
    ...usual,
    port: 0,
    dataDir,
    engine: profile.engine ?? 'reference',
    logLevel: 'error',
    threads: 1,
    defaultCollection: profile.defaultCollection ?? null,
    limits: { ...usual.limits, ...profile.limits },
    corsOrigins: profile.corsOrigins ?? [],
    backupDir: profile.hasBackups === true ? backupDir : null,
  };
  const start = async () => {
    const running = await startOne(config);
    await running.loaded;
    return running;
  };
  let server: RunningServer = await start();
  let agent = createAgent();
  const end = async () => {
    agent.destroy();
    await server.stop();
  };
  return {
    isForOneCase: profile.isForOneCase === true,
    send: (outgoing) => send(server.url, agent, outgoing),
    async restart() {
      await end();
      server = await start();
      agent = createAgent();
    },
    async stop() {
      await end();
      for (const folder of [dataDir, backupDir]) {
        await rm(folder, { recursive: true, force: true });
      }
    },
  };
}
