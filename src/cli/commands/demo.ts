// `sagitta demo`: the server with the sample collection, which is loaded on the first start, and
// three commands to paste. Settings come from the environment as for serve.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { type Client, createClient, SagittaClientError } from '../../client/client.js';
import { serverEnvironment } from '../connection.js';
import { CliError } from '../failure.js';
import { ImportJournal } from '../import-state.js';
import { createProgress, formatCount } from '../progress.js';
import { readConfig, serve } from './serve.js';

const COLLECTION = 'wordnet';
const DIMENSION = 256;
/** Atlantic bottlenose dolphin. */
const DOLPHIN = 'n02069974';
/** A label of the collection, so that a load that was cut short is taken up again. */
const LABEL = 'sample';

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('run the server with a sample collection and print queries to paste')
    .action(async () => {
      const logLevel = serverEnvironment().SAGITTA_LOG_LEVEL ?? 'warn';
      await serve(readConfig({ logLevel }), async (server) => {
        await server.loaded;
        // One try: the server is in this process, and refuses only when it is told to stop.
        const client = createClient({ baseUrl: server.url, retry: { attemptsMax: 1 } });
        await loadSample(client).catch((error: unknown) => {
          throw isRefused(error) ? new CliError(NOT_OPEN) : error;
        });
        process.stdout.write(welcome(server.url));
      });
    });
}

async function loadSample(client: Client): Promise<void> {
  const record = await findSample(client);
  if (record !== undefined && record.labels[LABEL] !== 'loading') {
    const count = formatCount(record.vector_count);
    process.stdout.write(`The collection ${COLLECTION} is there: ${count} vectors.\n`);
    return;
  }
  if (record === undefined) {
    await client.collections.create({
      id: COLLECTION,
      dimension: DIMENSION,
      description: 'A sample of the senses of WordNet 3.0, as text vectors',
      labels: { [LABEL]: 'loading' },
    });
  }
  const { importFiles } = await import('../import-files.js');
  const { rows } = await importFiles(client, [samplePath()], {
    collection: COLLECTION,
    batch: 1_000,
    openJournal: async () => ImportJournal.none(),
    createProgress: () => createProgress(`Loading ${COLLECTION}:`),
    interruption: new AbortController().signal,
  });
  await client.collections.update(COLLECTION, { labels: { [LABEL]: 'loaded' } });
  process.stdout.write(`Loaded ${formatCount(rows)} vectors into the collection ${COLLECTION}.\n`);
}

async function findSample(client: Client) {
  try {
    return await client.collections.get(COLLECTION);
  } catch (error) {
    if (error instanceof SagittaClientError && error.code === 'collection_not_found') return;
    throw error;
  }
}

/** The demo is for whoever has nothing yet. */
const NOT_OPEN =
  'API keys were made in this data directory, so that it answers nobody without one; name another for the demo: SAGITTA_DATA_DIR=./demo-data sagitta demo';

function isRefused(error: unknown): boolean {
  return error instanceof SagittaClientError && error.code === 'credentials_missing';
}

/** In the repository, seen from where the compiler puts this file. */
function samplePath(): string {
  const root = fileURLToPath(new URL('../../../..', import.meta.url));
  const path = join(root, 'examples', 'data', 'wordnet.arrow');
  if (existsSync(path)) return path;
  throw new CliError(`the sample is missing: expected ${path}`);
}

/** A line a match, by the node that is there: nothing else has to be installed. */
const SHOW =
  'node -e \'for (const m of JSON.parse(require("fs").readFileSync(0)).matches) ' +
  'console.log(m.score.toFixed(3), m.id, m.metadata.lemma, "-", m.metadata.gloss)\'';

function welcome(url: string): string {
  const query = `curl -sS ${url}/v1/collections/${COLLECTION}/query -H 'content-type: application/json'`;
  const near = `"id": "${DOLPHIN}", "top_k": 5, "include_metadata": true`;
  const filter = '{"category": "noun.animal", "word_count": {"$gte": 3}}';
  const page = `"id": "${DOLPHIN}", "limit": 5, "include_metadata": true`;
  const takeCursor = `sed 's/.*"next_cursor":"\\([^"]*\\)".*/\\1/'`;
  return `
Sagitta listens on ${url}, its docs are at ${url}/docs. Paste into another terminal:

Words near "dolphin":

  ${query} -d '{${near}}' | ${SHOW}

Among animals with three names or more:

  ${query} -d '{${near}, "filter": ${filter}}' | ${SHOW}

The next page:

  cursor=$(${query} -d '{${page}}' | ${takeCursor}); ${query} -d "{\\"cursor\\": \\"$cursor\\"}" | ${SHOW}

Ctrl-C stops the server; the data stays.
`;
}
