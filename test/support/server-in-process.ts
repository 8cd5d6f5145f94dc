// Starts a whole server in the test process, on a free port and with a new data directory.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../../src/main.js';
import { loadConfig } from '../../src/platform/config.js';

export interface TestServer {
  readonly url: string;
  close(): Promise<void>;
}

export async function startTestServer(
  settings: Readonly<Record<string, string>> = {},
): Promise<TestServer> {
  const directory = await mkdtemp(join(tmpdir(), 'sagitta-test-'));
  const server = await startServer(
    loadConfig({
      env: {
        SAGITTA_PORT: '0',
        SAGITTA_DATA_DIR: directory,
        SAGITTA_ENGINE: 'reference',
        SAGITTA_THREADS: '1',
        SAGITTA_LOG_LEVEL: 'silent',
        ...settings,
      },
    }),
  );
  await server.loaded;
  return {
    url: server.url,
    async close() {
      await server.stop();
      await rm(directory, { recursive: true });
    },
  };
}
