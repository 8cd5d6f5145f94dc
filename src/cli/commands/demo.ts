// `sagitta demo`: runs the server with sample collections, which are loaded on the first start, and prints the address
// of the console and queries to paste. Most settings come from the environment, as for `serve`.

import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  type Client,
  type CollectionInput,
  createClient,
  SagittaClientError,
} from '@sagitta/client';
import type { Command } from 'commander';
import { packageFile } from '../../common/package-files.js';
import { PREPARATION_HEADER } from '../../common/preparation.js';
import type { RunningServer } from '../../main.js';
import { describeSettings } from '../../platform/config.js';
import { ImportJournal } from '../import/journal.js';
import { serverEnvironment } from '../service/connection.js';
import { openPage } from '../terminal/browser.js';
import { CliError } from '../terminal/failure.js';
import { createProgress } from '../terminal/progress.js';
import { pluralize } from '../terminal/units.js';
import { optionOf, readConfig, serve } from './serve.js';

interface Sample extends CollectionInput {
  readonly id: string;
  /** Name of the file in examples/data. */
  readonly file: string;
}

const WORDNET: Sample = {
  id: 'wordnet',
  file: 'wordnet-sentences.arrow',
  dimension: 512,
  vectors: { terms: { dimension: 256 } },
  text: { fields: ['lemma', 'gloss'], language: 'english' },
  description: 'Sample: word senses of WordNet 3.0 as sentence vectors',
};
const DIGITS: Sample = {
  id: 'digits',
  file: 'digits.jsonl.gz',
  dimension: 64,
  metric: 'euclidean',
  description: 'Sample: handwritten digits, 8 × 8 pixels as vectors',
  // The console draws the values of a vector as a picture of 8 × 8 pixels.
  labels: { preview: 'values:8x8' },
};
/** The first query that the demo prints, for the model that made the vectors of WORDNET. */
const SENTENCE = 'a big cat with stripes';
/** The sense "Atlantic bottlenose dolphin". */
const DOLPHIN = 'n02069974';
/** Label that marks an unfinished load, so that the next start repeats it. */
const LABEL = 'sample';

/** The options of `serve` that the demo also has. */
const SETTINGS: readonly string[] = ['host', 'port', 'dataDir'];

type DemoOptions = { readonly open?: boolean } & {
  readonly [Setting in 'host' | 'port' | 'dataDir']?: string;
};

const EXAMPLES = `
Examples:
  $ sagitta demo --open
  $ sagitta demo --port 9000 --data-dir ./demo-data

The other settings of sagitta serve come from its environment variables.`;

export function defineDemo(command: Command): void {
  command.option('--open', 'open the console in the browser');
  for (const setting of describeSettings()) {
    if (SETTINGS.includes(setting.name)) command.addOption(optionOf(setting));
  }
  command.addHelpText('after', EXAMPLES).action(async ({ open, ...overrides }: DemoOptions) => {
    const logLevel = serverEnvironment().SAGITTA_LOG_LEVEL ?? 'warn';
    const config = readConfig({ logLevel, ...overrides });
    // Until the samples are loaded, other clients would find collections missing or incomplete.
    const preparation = { isDone: false, token: randomUUID() };
    const prepare = async (server: RunningServer) => {
      process.stdout.write(
        `Sagitta is starting on ${server.url} and answers 503 until the samples are loaded.\n`,
      );
      await server.loaded;
      const client = createClient({
        baseUrl: server.url,
        // No retries: the server runs in this process and rejects requests only while stopping.
        retry: { attemptsMax: 1 },
        fetch(url, init) {
          const headers = new Headers(init?.headers);
          headers.set(PREPARATION_HEADER, preparation.token);
          return fetch(url, { ...init, headers });
        },
      });
      const modelIssue = await loadSamples(client).catch((error: unknown) => {
        throw needsCredentials(error) ? new CliError(NEEDS_CREDENTIALS) : error;
      });
      preparation.isDone = true;
      return modelIssue;
    };
    const onReady = async (server: RunningServer) => {
      const modelIssue = await prepare(server);
      const consoleUrl = config.isConsoleServed ? `${server.url}/console/` : null;
      process.stdout.write(welcome(server.url, consoleUrl, modelIssue));
      if (open === true) await openConsole(consoleUrl);
    };
    await serve(config, onReady, { preparation });
  });
}

async function openConsole(consoleUrl: string | null): Promise<void> {
  const reason = consoleUrl === null ? 'SAGITTA_CONSOLE turns it off' : await openPage(consoleUrl);
  if (reason !== null) process.stdout.write(`Cannot open the console: ${reason}.\n`);
}

/** Returns why sentences cannot be turned into vectors; null if they can. */
async function loadSamples(client: Client): Promise<string | null> {
  // The larger sample last: its rows are encoded further in the background.
  for (const sample of [DIGITS, WORDNET]) await loadSample(client, sample);
  const { embed } = await client.collections.get(WORDNET.id);
  if (embed !== undefined) return null;
  try {
    await client.collections.update(WORDNET.id, { embed: 'builtin' });
    return null;
  } catch (error) {
    // The model's package is optional; and the collection may be an older sample with other vectors.
    const codes: readonly string[] = ['embedding_not_configured', 'dimension_mismatch'];
    if (error instanceof SagittaClientError && codes.includes(error.code)) return error.detail;
    throw error;
  }
}

async function loadSample(client: Client, { file, ...collection }: Sample): Promise<void> {
  const { id, labels = {} } = collection;
  const record = await findCollection(client, id);
  if (record !== undefined && record.labels[LABEL] !== 'loading') {
    const count = pluralize(record.vector_count, 'vector');
    process.stdout.write(`Using the existing collection ${id} (${count}).\n`);
    return;
  }
  if (record === undefined) {
    await client.collections.create({ ...collection, labels: { ...labels, [LABEL]: 'loading' } });
  }
  const { importFiles } = await import('../import/import-files.js');
  const { rows } = await importFiles(client, [samplePath(file)], {
    collection: id,
    batch: 1_000,
    openJournal: async () => ImportJournal.none(),
    createProgress: () => createProgress(`Loading ${id}:`),
    interruption: new AbortController().signal,
  });
  await client.collections.update(id, { labels: { ...labels, [LABEL]: 'loaded' } });
  process.stdout.write(`Loaded ${pluralize(rows, 'vector')} into the collection ${id}.\n`);
}

async function findCollection(client: Client, id: string) {
  try {
    return await client.collections.get(id);
  } catch (error) {
    if (error instanceof SagittaClientError && error.code === 'collection_not_found') return;
    throw error;
  }
}

const NEEDS_CREDENTIALS =
  'this data directory has API keys, so the demo cannot query it; use another directory: sagitta demo --data-dir ./demo-data';

function needsCredentials(error: unknown): boolean {
  return error instanceof SagittaClientError && error.code === 'credentials_missing';
}

function samplePath(file: string): string {
  const path = packageFile(`examples/data/${file}`);
  if (existsSync(path)) return path;
  throw new CliError(`sample data not found: expected ${path}`);
}

/** Prints one line per match with Node, so that no other tool is needed. */
const FORMAT_MATCHES =
  'node -e \'for (const m of JSON.parse(require("fs").readFileSync(0)).matches) ' +
  'console.log(m.score.toFixed(3), m.id, m.metadata.lemma, "-", m.metadata.gloss)\'';

function welcome(url: string, consoleUrl: string | null, modelIssue: string | null): string {
  const query = `curl -sS ${url}/v1/collections/${WORDNET.id}/query -H 'content-type: application/json'`;
  const near = `"id": "${DOLPHIN}", "top_k": 5, "include_metadata": true`;
  const meaning =
    modelIssue === null
      ? `
Senses whose gloss means something similar to a sentence:

  ${query} -d '{"embed": "${SENTENCE}", "top_k": 5, "include_metadata": true}' | ${FORMAT_MATCHES}
`
      : `
Queries by sentences: ${modelIssue}
`;
  const filter = '{"category": "noun.animal", "word_count": {"$gte": 3}}';
  const page = `"id": "${DOLPHIN}", "limit": 5, "include_metadata": true`;
  const takeCursor = `sed 's/.*"next_cursor":"\\([^"]*\\)".*/\\1/'`;
  const consoleLine = consoleUrl === null ? '' : `\nConsole: ${consoleUrl}\n`;
  return `${consoleLine}
Sagitta is listening on ${url}. API documentation: ${url}/docs

Paste these queries into another terminal.
${meaning}
The senses nearest to "dolphin":

  ${query} -d '{${near}}' | ${FORMAT_MATCHES}

Only animals with at least three names:

  ${query} -d '{${near}, "filter": ${filter}}' | ${FORMAT_MATCHES}

The second page of results:

  cursor=$(${query} -d '{${page}}' | ${takeCursor}); ${query} -d "{\\"cursor\\": \\"$cursor\\"}" | ${FORMAT_MATCHES}

Press Ctrl-C to stop the server. The data is kept.
`;
}
