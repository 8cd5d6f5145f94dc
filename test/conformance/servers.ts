// The servers that cases run against: real ones, in this process, each with a data directory of
// its own that goes with it. Started when a case first asks for one.

import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Limits } from '../../src/common/limits.js';
import { type RunningServer, startServer } from '../../src/main.js';
import { type Config, loadConfig } from '../../src/platform/config.js';
import { PATIENT_LIMITS } from '../support/patience.js';
import { exchange, type Incoming, type Outgoing } from './exchange.js';

interface Profile {
  readonly engine?: Config['engine'];
  readonly defaultCollection?: string;
  readonly limits?: Partial<Limits>;
  /** Whether backups may be asked for. */
  readonly hasBackups?: boolean;
  /** One case is all that it sees, and what that leaves goes with it. */
  readonly isForOneCase?: boolean;
}

export const PROFILES = {
  /** As it comes. */
  usual: {},
  /** With the tensor program instead of plain loops. */
  wasm: { engine: 'wasm' },
  /** With the fastest engine of this machine. */
  auto: { engine: 'auto' },
  /** Another one, with a secret and a default collection of its own, and with small segments. */
  second: { defaultCollection: 'the-default', limits: { segmentRowsMax: 64 } },
  /** Its cases make API keys, and so it asks for a credential from then on. */
  guarded: { hasBackups: true, isForOneCase: true },
  /** One read and one write in a long while. */
  throttled: {
    isForOneCase: true,
    limits: { readRateMax: 1, readBurstMax: 2, writeRateMax: 1, writeBurstMax: 4 },
  },
  /** Every bound so low that a case reaches it with a few lines. */
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
      vectorIdBytesMax: 26,
      metadataBytesMax: 64,
      metadataDepthMax: 2,
      metadataColumnsMax: 2,
      segmentRowsMax: 64,
      collectionsMax: 3,
      requestMsMax: 2_500,
      queuedQueriesMax: 2,
      retentionMs: 1_200,
      idempotencyMs: 1_200,
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

export class Servers {
  readonly #running = new Map<ProfileName, Promise<TestServer>>();

  get(name: ProfileName): Promise<TestServer> {
    let server = this.#running.get(name);
    if (server === undefined) {
      server = startTestServer(PROFILES[name]);
      this.#running.set(name, server);
    }
    return server;
  }

  async stop(): Promise<void> {
    for (const server of this.#running.values()) await (await server).stop();
  }
}

export async function startTestServer(profile: Profile): Promise<TestServer> {
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
    limits: { ...usual.limits, ...PATIENT_LIMITS, ...profile.limits },
    backupDir: profile.hasBackups === true ? backupDir : null,
  };
  const start = async () => {
    const running = await startServer(config);
    await running.loaded;
    return running;
  };
  let server: RunningServer = await start();
  let agent = new Agent({ keepAlive: true });
  const end = async () => {
    agent.destroy();
    await server.stop();
  };
  return {
    isForOneCase: profile.isForOneCase === true,
    send: (outgoing) => exchange(server.url, agent, outgoing),
    async restart() {
      await end();
      server = await start();
      agent = new Agent({ keepAlive: true });
    },
    async stop() {
      await end();
      for (const folder of [dataDir, backupDir]) {
        await rm(folder, { recursive: true, force: true });
      }
    },
  };
}
