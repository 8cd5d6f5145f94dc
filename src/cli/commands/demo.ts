// `sagitta demo`: runs the server with a sample collection, which is loaded on the first start, and
// prints queries to paste. Settings come from the environment, as for `serve`.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { type Client, createClient, SagittaClientError } from '../../client/client.js';
import { serverEnvironment } from '../connection.js';
import { CliError } from '../failure.js';
import { ImportJournal } from '../import/journal.js';
import { createProgress } from '../progress.js';
import { pluralize } from '../units.js';
import { readConfig, serve } from './serve.js';

const COLLECTION = 'wordnet';
const DIMENSION = 256;
/** The sense "Atlantic bottlenose dolphin". */
const DOLPHIN = 'n02069974';
/** Label that marks an unfinished load, so that the next start repeats it. */
const LABEL = 'sample';

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('run the server with a sample collection')
    .action(async () => {
      const logLevel = serverEnvironment().SAGITTA_LOG_LEVEL ?? 'warn';
      await serve(readConfig({ logLevel }), async (server) => {
        await server.loaded;
        // No retries: the server runs in this process and rejects requests only while stopping.
        const client = createClient({ baseUrl: server.url, retry: { attemptsMax: 1 } });
        await loadSample(client).catch((error: unknown) => {
          throw needsCredentials(error) ? new CliError(NEEDS_CREDENTIALS) : error;
        });
        process.stdout.write(welcome(server.url));
      });
    });
}

async function loadSample(client: Client): Promise<void> {
  const record = await findSample(client);
  if (record !== undefined && record.labels[LABEL] !== 'loading') {
    const count = pluralize(record.vector_count, 'vector');
    process.stdout.write(`Using the existing collection ${COLLECTION} (${count}).\n`);
    return;
  }
  if (record === undefined) {
    await client.collections.create({
      id: COLLECTION,
      dimension: DIMENSION,
      description: 'Sample: word senses of WordNet 3.0 as text vectors',
      labels: { [LABEL]: 'loading' },
    });
  }
  const { importFiles } = await import('../import/import-files.js');
  const { rows } = await importFiles(client, [samplePath()], {
    collection: COLLECTION,
    batch: 1_000,
    openJournal: async () => ImportJournal.none(),
    createProgress: () => createProgress(`Loading ${COLLECTION}:`),
    interruption: new AbortController().signal,
  });
  await client.collections.update(COLLECTION, { labels: { [LABEL]: 'loaded' } });
  process.stdout.write(`Loaded ${pluralize(rows, 'vector')} into the collection ${COLLECTION}.\n`);
}

async function findSample(client: Client) {
  try {
    return await client.collections.get(COLLECTION);
  } catch (error) {
    if (error instanceof SagittaClientError && error.code === 'collection_not_found') return;
    throw error;
  }
}

const NEEDS_CREDENTIALS =
  'this data directory has API keys, so the demo cannot query it; use another directory: SAGITTA_DATA_DIR=./demo-data sagitta demo';

function needsCredentials(error: unknown): boolean {
  return error instanceof SagittaClientError && error.code === 'credentials_missing';
}

/** The sample lies in the repository's examples/; this file runs from dist/src/cli/commands. */
function samplePath(): string {
  const root = fileURLToPath(new URL('../../../..', import.meta.url));
  const path = join(root, 'examples', 'data', 'wordnet.arrow');
  if (existsSync(path)) return path;
  throw new CliError(`sample data not found: expected ${path}`);
}

/** Prints one line per match with Node, so that no other tool is needed. */
const FORMAT_MATCHES =
  'node -e \'for (const m of JSON.parse(require("fs").readFileSync(0)).matches) ' +
  'console.log(m.score.toFixed(3), m.id, m.metadata.lemma, "-", m.metadata.gloss)\'';

function welcome(url: string): string {
  const query = `curl -sS ${url}/v1/collections/${COLLECTION}/query -H 'content-type: application/json'`;
  const near = `"id": "${DOLPHIN}", "top_k": 5, "include_metadata": true`;
  const filter = '{"category": "noun.animal", "word_count": {"$gte": 3}}';
  const page = `"id": "${DOLPHIN}", "limit": 5, "include_metadata": true`;
  const takeCursor = `sed 's/.*"next_cursor":"\\([^"]*\\)".*/\\1/'`;
  return `
Sagitta is listening on ${url}. API documentation: ${url}/docs

Paste these queries into another terminal.

The words nearest to "dolphin":

  ${query} -d '{${near}}' | ${FORMAT_MATCHES}

Only animals with at least three names:

  ${query} -d '{${near}, "filter": ${filter}}' | ${FORMAT_MATCHES}

The second page of results:

  cursor=$(${query} -d '{${page}}' | ${takeCursor}); ${query} -d "{\\"cursor\\": \\"$cursor\\"}" | ${FORMAT_MATCHES}

Press Ctrl-C to stop the server. The data is kept.
`;
}
