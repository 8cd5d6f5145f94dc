// Runs the cases in cases/ over HTTP, and holds the suite to the OpenAPI document: no operation and
// no code of a refusal without a case.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/types.js';
import { type Case, readCaseFiles } from './case.js';
import { valueAt } from './match.js';
import { ReplyRules } from './reply-rules.js';
import { runCase } from './run-case.js';
import { Servers } from './servers.js';

/** Codes that no request of a case can bring about on a healthy server; other tests do. */
const CODES_WITHOUT_CASE = [
  'idempotency_in_flight',
  'collection_unavailable',
  'overloaded',
  'starting',
  'stopping',
  'storage_full',
  'internal',
  'configuration_invalid',
  'data_directory_locked',
  'data_corrupt',
];

const servers = new Servers();
let document: JsonObject;
let rules: ReplyRules;
let runCount = 0;
let caseCount = 0;

before(async () => {
  const server = await servers.get('usual');
  const reply = await server.send({ method: 'GET', path: '/openapi.json', headers: {} });
  document = reply.json as JsonObject;
  rules = new ReplyRules(document);
});

after(() => servers.stop());

for (const { name, file } of readCaseFiles()) {
  describe(`${name}: ${file.section}`, () => {
    for (const own of file.cases) {
      const testCase: Case = { ...file.defaults, ...own };
      const prefixes = testCase.bothPrefixes === true ? ['/v1', ''] : ['/v1'];
      for (const prefix of prefixes) {
        caseCount++;
        const suffix = prefixes.length === 1 ? '' : prefix === '' ? ' (no prefix)' : ' (/v1)';
        test(testCase.name + suffix, async (context) => {
          runCount++;
          const running = runCase(testCase, { servers, rules, prefix });
          if (testCase.defect === undefined) return running;
          const failure = await running.then(
            () => undefined,
            (error: unknown) => error,
          );
          assert.ok(failure !== undefined, 'the case passes: take the mark `defect` away');
          context.todo(testCase.defect);
          throw failure;
        });
      }
    }
  });
}

describe('the suite', () => {
  test('asks for every operation that the OpenAPI document has', (context) => {
    if (runCount < caseCount) return context.skip('only some of the cases ran');
    assert.deepEqual(
      rules.operationIds.filter((id) => !rules.answered.has(id)),
      [],
    );
  });

  test('brings about every code of a refusal', (context) => {
    if (runCount < caseCount) return context.skip('only some of the cases ran');
    const codes = valueAt(document, '/components/schemas/ErrorCode/enum') as string[];
    assert.deepEqual(
      codes.filter((code) => !rules.codes.has(code) && !CODES_WITHOUT_CASE.includes(code)),
      [],
    );
  });
});
