// Runs the cases in cases/ over HTTP, and checks that every operation and every error code of the
// OpenAPI document has a case. `npm test` runs each case once, `npm run test:full` with both prefixes
// and on every server that the case names.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/common/types.js';
import { IS_FULL } from '../support/full.js';
import { type Case, readCaseFiles } from './case.js';
import { valueAt } from './match.js';
import { ReplyRules } from './reply-rules.js';
import { runCase } from './run-case.js';
import { type ProfileName, Servers } from './servers.js';

/** Codes of errors that no case can cause reliably, for lack of timing or of damage; other tests do. */
const CODES_WITHOUT_CASE = [
  'idempotency_in_flight',
  'collection_unavailable',
  'credentials_unavailable',
  'embedding_failed',
  'embedding_unavailable',
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
      for (const { prefix, server, suffix } of waysToRun(testCase)) {
        caseCount++;
        test(testCase.name + suffix, async (context) => {
          runCount++;
          const running = runCase(testCase, { servers, rules, prefix, server });
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

function waysToRun({ bothPrefixes, server = 'usual' }: Case) {
  const prefixes = IS_FULL && bothPrefixes === true ? ['/v1', ''] : ['/v1'];
  const all = [server].flat() as ProfileName[];
  const names = IS_FULL ? all : all.slice(0, 1);
  return prefixes.flatMap((prefix) =>
    names.map((name) => {
      const notes = [
        ...(prefixes.length === 1 ? [] : [prefix === '' ? 'no prefix' : prefix]),
        ...(names.length === 1 ? [] : [name]),
      ];
      return { prefix, server: name, suffix: notes.length === 0 ? '' : ` (${notes.join(', ')})` };
    }),
  );
}

describe('the conformance cases as a whole', () => {
  test('the conformance cases ask for every operation of the OpenAPI document', (context) => {
    if (runCount < caseCount) return context.skip('only some of the cases ran');
    assert.deepEqual(
      rules.operationIds.filter((id) => !rules.answered.has(id)),
      [],
    );
  });

  test('the conformance cases cause every error code of the OpenAPI document', (context) => {
    if (runCount < caseCount) return context.skip('only some of the cases ran');
    const codes = valueAt(document, '/components/schemas/ErrorCode/enum') as string[];
    assert.deepEqual(
      codes.filter((code) => !rules.codes.has(code) && !CODES_WITHOUT_CASE.includes(code)),
      [],
    );
  });
});
