// Registers the tests of the cases in cases/, which run over HTTP, and of what they cover together: every operation
// and every error code of the OpenAPI document.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/common/types.js';
import { OPERATIONS_OF_CLUSTERS } from '../server/openapi-document.js';
import { type Case, readCaseFiles } from './case.js';
import { valueAt } from './match.js';
import { ReplyRules } from './reply-rules.js';
import { runCase } from './run-case.js';
import type { ProfileName, Servers } from './servers.js';

/** Codes of errors that no case can cause reliably, for lack of timing, of damage or of other nodes; other tests do. */
const CODES_WITHOUT_CASE = [
  'idempotency_in_flight',
  'collection_unavailable',
  'credentials_unavailable',
  'embedding_failed',
  'embedding_unavailable',
  'overloaded',
  'no_leader',
  'no_holder',
  'outcome_unknown',
  'collections_apart',
  'starting',
  'stopping',
  'storage_full',
  'internal',
  'configuration_invalid',
  'data_directory_locked',
  'data_corrupt',
];

export interface CaseChoice {
  /** The files of cases; all by default. */
  readonly files?: readonly string[];
  /**
   * `once` is the first server that the case names, with the prefix `/v1`; `others` are the other servers and
   * the paths without prefix, for the cases that name them.
   */
  readonly ways?: 'once' | 'others';
}

export function describeCases(servers: Servers, { files, ways = 'once' }: CaseChoice = {}): void {
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
    if (files?.includes(name) === false) continue;
    describe(`${name}: ${file.section}`, () => {
      for (const own of file.cases) {
        const testCase: Case = { ...file.defaults, ...own };
        for (const { prefix, server, suffix } of waysToRun(testCase, ways)) {
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

  if (files !== undefined || ways === 'others') return;
  describe('the conformance cases as a whole', () => {
    test('the conformance cases ask for every operation of the OpenAPI document', (context) => {
      if (runCount < caseCount) return context.skip('only some of the cases ran');
      assert.deepEqual(
        rules.operationIds.filter(
          (id) => !rules.answered.has(id) && !OPERATIONS_OF_CLUSTERS.has(id),
        ),
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
}

function waysToRun({ bothPrefixes, server = 'usual' }: Case, choice: 'once' | 'others') {
  const prefixes = bothPrefixes === true ? ['/v1', ''] : ['/v1'];
  const names = [server].flat() as ProfileName[];
  const ways = prefixes.flatMap((prefix) =>
    names.map((name) => {
      const notes = [
        ...(prefixes.length === 1 ? [] : [prefix === '' ? 'no prefix' : prefix]),
        ...(names.length === 1 ? [] : [name]),
      ];
      return { prefix, server: name, suffix: notes.length === 0 ? '' : ` (${notes.join(', ')})` };
    }),
  );
  return choice === 'once' ? ways.slice(0, 1) : ways.slice(1);
}
