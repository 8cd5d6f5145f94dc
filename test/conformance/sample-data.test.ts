// Exact results on real data over HTTP: each engine must find the neighbours listed in the sample data, for three
// metrics and a filter.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Json } from '../../src/common/types.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { inRepository } from './repository.js';
import { startTestServer, type TestServer } from './servers.js';
import { type Neighbours, QUESTIONS, readWordnet, type Sense } from './wordnet.js';

const SETS = [
  {
    name: 'the senses in the repository',
    senses: inRepository('examples', 'data', 'wordnet.arrow'),
    queries: inRepository('examples', 'data', 'wordnet-queries.arrow'),
  },
  {
    name: '10 000 senses',
    senses: inRepository('..', 'shared', 'data', 'wordnet-10k.arrow'),
    queries: inRepository('..', 'shared', 'data', 'wordnet-10k-queries.arrow'),
  },
];
/** The larger data set and the other engines take half a minute. */
const ENGINES = IS_NIGHTLY ? (['reference', 'wasm', 'auto'] as const) : (['auto'] as const);
const BATCH_ROWS = 1_000;
const QUERIES_AT_ONCE = 16;

interface Reply {
  readonly matches: readonly { id: string; score: number; distance?: number }[];
}

for (const files of IS_NIGHTLY ? SETS : SETS.slice(0, 1)) {
  const data = readWordnet(files);
  for (const engine of ENGINES) {
    const skip = data === null ? `${files.senses} does not exist` : false;
    describe(`${files.name}, engine ${engine}`, { skip }, () => {
      let server: TestServer;

      before(async () => {
        server = await startTestServer({ engine });
        await load(server, data!.senses);
      });
      after(() => server.stop());

      for (const { name, fields } of QUESTIONS) {
        test(`finds exactly the neighbours of all queries by ${name}`, async () => {
          await eachAtOnce(data!.queries, async (query) => {
            const wanted = query.neighbours[name];
            const body = { ...fields, vector: query.values, top_k: wanted.ids.length };
            const reply = await post(server, '/v1/collections/senses/query', body);
            check(reply as unknown as Reply, wanted, `${query.id} by ${name}`);
          });
        });
      }
    });
  }
}

async function load(server: TestServer, senses: readonly Sense[]): Promise<void> {
  await post(server, '/v1/collections', { id: 'senses', dimension: 256, metric: 'cosine' });
  for (let start = 0; start < senses.length; start += BATCH_ROWS) {
    const vectors = senses.slice(start, start + BATCH_ROWS);
    await post(server, '/v1/collections/senses/vectors', { vectors });
  }
  const counted = await post(server, '/v1/collections/senses/count', {});
  assert.deepEqual(counted, { count: senses.length });
}

async function post(server: TestServer, path: string, body: object): Promise<Json> {
  const { status, json, text } = await server.send({
    method: 'POST',
    path,
    headers: {},
    body: Buffer.from(JSON.stringify(body)),
  });
  assert.equal(status, 200, text.slice(0, 500));
  return json!;
}

function check({ matches }: Reply, neighbours: Neighbours, what: string): void {
  assert.deepEqual(
    matches.map(({ id }) => id),
    neighbours.ids,
    what,
  );
  for (const [i, { score, distance }] of matches.entries()) {
    assertRounded(score, neighbours.scores[i], `${what}: score ${i}`);
    assertRounded(distance, neighbours.distances?.[i], `${what}: distance ${i}`);
  }
}

/** Compares with the float32 nearest to the exact value, which itself has the rounding error of a float64 sum. */
function assertRounded(found: number | undefined, exact: number | undefined, what: string): void {
  if (found === undefined || exact === undefined) {
    assert.equal(found, exact, what);
    return;
  }
  const error = Math.abs(Math.fround(found) - exact);
  assert.ok(
    error <= Math.abs(exact) * 2 ** -24 + 1e-13,
    `${what}: expected ${exact}, found ${found}`,
  );
}

/** Runs several at a time, so that engines receive batches. */
async function eachAtOnce<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  const workers = Array.from({ length: QUERIES_AT_ONCE }, async () => {
    for (const item of rest) await work(item);
  });
  await Promise.all(workers);
}
