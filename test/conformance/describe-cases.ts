// Registers the tests of the cases in cases/, which run over HTTP, and the tests that together they cover every
// operation and every error code of the OpenAPI document.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/common/types.js';
import { OPERATIONS_OF_CLUSTERS } from '../server/openapi-document.js';
import { type Case, readCaseFiles } from './case.js';
import { valueAt } from './match.js';
import { ReplyRules } from './reply-rules.js';
import { runCase } from './run-case.js';
import type { ProfileName, Servers } from './servers.js';

/** Error codes that cases cannot cause reliably, because they need timing, damage or other nodes. Other tests do. */
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
  'backup_failed',
  'internal',
  'configuration_invalid',
  'data_directory_locked',
  'data_corrupt',
];

export interface CaseChoice {
  /** The files of cases; all by default. */
  readonly files?: readonly string[];
  /**
   * `first` runs each case on the first server it names, with the prefix `/v1`. `quick` does the same without the cases
   * that take seconds. `rest` runs everything that `quick` leaves out.
   */
  readonly ways?: 'first' | 'quick' | 'rest';
  /** Whether a server is a node of a cluster. */
  readonly isCluster?: boolean;
}

export function describeCases(
  servers: Servers,
  { files, ways = 'first', isCluster = false }: CaseChoice = {},
): void {
  let document: JsonObject;
  let rules: ReplyRules;
  let runCount = 0;
  let caseCount = 0;
  /** Codes that cases of another run expect. */
  const codesElsewhere = new Set<string>();

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
      for (const testCase of file.cases) {
        if (isCluster && testCase.alone === true) continue;
        if (ways === 'quick' && takesSeconds(testCase)) {
          for (const code of expectedCodes(testCase)) codesElsewhere.add(code);
        }
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
            assert.ok(failure !== undefined, 'the case passes: remove its member `defect`');
            context.todo(testCase.defect);
            throw failure;
          });
        }
      }
    });
  }

  if (files !== undefined || ways === 'rest') return;
  describe('the conformance cases as a whole', () => {
    test('call every operation of the OpenAPI document', (context) => {
      if (runCount < caseCount) return context.skip('only some of the cases ran');
      assert.deepEqual(
        rules.operationIds.filter(
          (id) => !rules.answered.has(id) && !OPERATIONS_OF_CLUSTERS.has(id),
        ),
        [],
      );
    });

    test('cause every error code of the OpenAPI document', (context) => {
      if (runCount < caseCount) return context.skip('only some of the cases ran');
      const codes = valueAt(document, '/components/schemas/ErrorCode/enum') as string[];
      assert.deepEqual(
        codes.filter(
          (code) =>
            !rules.codes.has(code) &&
            !codesElsewhere.has(code) &&
            !CODES_WITHOUT_CASE.includes(code),
        ),
        [],
      );
    });
  });
}

/** Whether the case restarts a server or waits until something has expired. */
function takesSeconds({ steps }: Case): boolean {
  return steps.some((step) => 'restart' in step || ('waitMs' in step && step.waitMs >= 1_000));
}

/** Error codes that the case requires. */
function expectedCodes({ steps }: Case): string[] {
  return steps.flatMap((step) =>
    'expect' in step && 'problem' in step.expect ? [step.expect.problem.code] : [],
  );
}

function waysToRun(testCase: Case, choice: NonNullable<CaseChoice['ways']>) {
  const { bothPrefixes, server = 'usual' } = testCase;
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
  const firstCount = choice !== 'first' && takesSeconds(testCase) ? 0 : 1;
  return choice === 'rest' ? ways.slice(firstCount) : ways.slice(0, firstCount);
}
