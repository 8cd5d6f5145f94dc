// A server process with data for tests in a browser: sample words, an empty collection, and one that is difficult to
// display.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Client, createClient } from '@sagitta/client';
import { importFiles } from '../../../src/cli/import/import-files.js';
import { ImportJournal } from '../../../src/cli/import/journal.js';
import { freePorts } from '../../../test/support/free-ports.js';
import { type ServerProcess, startServerProcess } from '../../../test/support/server-process.js';
import { createExtremeCollection } from './extreme-collection.js';

const EXAMPLES = fileURLToPath(new URL('../../../../examples/data/', import.meta.url));

export interface ConsoleServer {
  readonly url: string;
  readonly client: Client;
  /** SIGKILL, then a new process on the same port and data. */
  restart(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

interface ConsoleServerOptions {
  /** Whether it has a directory for backups; true when absent. */
  readonly hasBackups?: boolean;
}

export async function startConsoleServer({
  hasBackups = true,
}: ConsoleServerOptions = {}): Promise<ConsoleServer> {
  const directory = await mkdtemp(join(tmpdir(), 'sagitta-console-'));
  const [port] = await freePorts(1);
  const settings = {
    ...(hasBackups && { SAGITTA_BACKUP_DIR: join(directory, 'backups') }),
    SAGITTA_PORT: String(port),
  };
  const dataDirectory = join(directory, 'data');
  let server: ServerProcess = await startServerProcess({ dataDirectory, settings });
  const { url } = server;
  const client = createClient({ baseUrl: url });
  return {
    url,
    client,
    kill: () => server.kill(),
    async restart() {
      await server.kill();
      server = await startServerProcess({ dataDirectory, settings });
    },
    async close() {
      await server.stop();
      await rm(directory, { recursive: true });
    },
  };
}

/** 4 200 word senses of 256 dimensions with seven metadata fields. */
export async function loadWords(client: Client, collection = 'wordnet'): Promise<void> {
  await importFiles(client, [join(EXAMPLES, 'wordnet.arrow')], {
    collection,
    batch: 1_000,
    openJournal: async () => ImportJournal.none(),
    createProgress: () => undefined,
    interruption: new AbortController().signal,
  });
}

export async function loadEverything(client: Client): Promise<void> {
  await client.collections.create({ id: 'empty', dimension: 8, metric: 'dot' });
  await loadWords(client);
  await createExtremeCollection(client);
}
