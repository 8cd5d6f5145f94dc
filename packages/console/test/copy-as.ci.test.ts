// The programs that the console writes can be pasted and run, against a real server.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Client, createClient, type QueryRequest } from '@sagitta/client';
import { startTestServer, type TestServer } from '../../../test/support/server-in-process.js';
import {
  type CopiedQuery,
  CREDENTIAL_VARIABLE,
  LANGUAGES,
  type Language,
} from '../src/views/query/copy-as.js';

const run = promisify(execFile);
const COLLECTION = 'copied.docs';
const PYTHON = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
// The package in the repository, so that it need not be installed.
const PACKAGE = fileURLToPath(new URL('../../../../python/src', import.meta.url));
const hasPackage =
  spawnSync(PYTHON, ['-c', 'import sagitta'], { env: { ...process.env, PYTHONPATH: PACKAGE } })
    .status === 0;

const REQUESTS: Readonly<Record<string, QueryRequest>> = {
  'by id': { id: `a'"\\$(x)`, limit: 2, include_metadata: true },
  'by a vector': { vector: [0.1, -2.5e-7, 1e-12], limit: 2 },
  'with a filter': {
    id: 'b',
    filter: {
      $or: [{ flag: true }, { $not: { 'a\'"b': null } }],
      ['__proto__']: { $exists: false },
    },
    score_threshold: -1,
    limit: 5,
  },
  'with an integer that float64 cannot represent': {
    id: 'b',
    filter: { n: { $gte: 1768907725507217523n } },
    limit: 5,
  },
  'with rankings that take several lines': {
    fusion: {
      kind: 'weighted',
      parts: [
        { id: 'b', weight: 0.5, filter: { flag: { $exists: false } } },
        { vector: [0.1, -2.5e-7, 1e-12], limit: 4, filter: { none: { $exists: false } } },
      ],
    },
    facets: [{ path: 'flag', ignore_own_filter: true }],
    limit: 5,
  },
  'by examples': { recommend: { positive: ['b', 'ü'], strategy: 'best_score' }, limit: 5 },
};

describe('a copied query', () => {
  let server: TestServer;
  let client: Client;

  before(async () => {
    server = await startTestServer();
    client = createClient({ baseUrl: server.url });
    await client.collections.create({ id: COLLECTION, dimension: 3 });
    await client.collection(COLLECTION).upsert([
      { id: `a'"\\$(x)`, values: [1, 0, 0], metadata: { flag: true } },
      { id: 'b', values: [0, 1, 0] },
      { id: 'c', values: [0, 0, 1], metadata: { n: 1768907725507217523n } },
      { id: 'd', values: [0, 0, 1], metadata: { n: 1768907725507217522n } },
      { id: 'ü', values: [0.1, 0.2, 0.7], metadata: { 'a\'"b': 1 } },
    ]);
  });

  after(() => server.close());

  for (const [name, request] of Object.entries(REQUESTS)) {
    test(`${name} runs with curl, Node and Python`, async (context) => {
      const { matches } = await client.collection(COLLECTION).query(request);
      assert.ok(matches.length > 0);
      const copied: CopiedQuery = {
        baseUrl: server.url,
        collectionId: COLLECTION,
        request,
        needsCredential: false,
      };
      const lines = matches.map(({ id, score }) => `${score.toFixed(6)} ${id}\n`).join('');
      const reply = JSON.parse(await runProgram('curl', copied)) as { matches: unknown };
      assert.deepEqual(reply.matches, matches);
      assert.equal(await runProgram('typescript', copied), lines);
      if (hasPackage) assert.equal(await runProgram('python', copied), lines);
      else context.diagnostic(`${PYTHON} has no httpx; SAGITTA_TEST_PYTHON names one that has`);
    });
  }

  test('reads the credential from the environment', async () => {
    const copied: CopiedQuery = {
      baseUrl: server.url,
      collectionId: COLLECTION,
      request: { id: 'b', limit: 1 },
      needsCredential: true,
    };
    for (const language of Object.keys(LANGUAGES) as Language[]) {
      assert.match(LANGUAGES[language].write(copied), new RegExp(CREDENTIAL_VARIABLE));
      if (language === 'python' && !hasPackage) continue;
      assert.match(await runProgram(language, copied), /ü|a'/);
    }
  });
});

async function runProgram(language: Language, copied: CopiedQuery): Promise<string> {
  const code = LANGUAGES[language].write(copied);
  const options = {
    env: {
      ...process.env,
      [CREDENTIAL_VARIABLE]: 'a-key',
      PYTHONPATH: PACKAGE,
      PYTHONDONTWRITEBYTECODE: '1',
    },
  };
  if (language === 'curl') return (await run('bash', ['-c', code], options)).stdout;
  if (language === 'python') return (await run(PYTHON, ['-c', code], options)).stdout;
  // Inside the repository, so that the package can be resolved.
  const file = fileURLToPath(new URL(`./copied-${process.pid}.mjs`, import.meta.url));
  await writeFile(file, code);
  try {
    return (await run(process.execPath, [file], options)).stdout;
  } finally {
    await rm(file);
  }
}
