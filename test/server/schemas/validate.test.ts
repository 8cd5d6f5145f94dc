import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import { field, SagittaError } from '../../../src/common/errors.js';
import { float32Text } from '../../../src/common/float-text.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { basicSchemas } from '../../../src/server/schemas/basics.js';
import { validateBody, validateLongBody } from '../../../src/server/schemas/validate.js';

const schema = z.strictObject({
  queries: z
    .array(z.strictObject({ k: z.int().default(7) }))
    .min(1)
    .max(400),
  mode: z.string().optional(),
});

const ARRAY = { name: 'queries', countMax: 400 };

const elements = (count: number): unknown[] => Array.from({ length: count }, (_, k) => ({ k }));

describe('a body that is validated in steps', () => {
  it('is what validation at once returns, and lets other work run', async () => {
    let isOther = false;
    setImmediate(() => {
      isOther = true;
    });
    const body = { queries: [...elements(299), {}], mode: 'x' };
    const valid = await validateLongBody(schema, body, ARRAY);
    assert.deepEqual(valid, validateBody(schema, body));
    assert.deepEqual(valid.queries.at(-1), { k: 7 });
    assert.ok(isOther);
  });

  it('has the issues of all of it', async () => {
    for (const body of [
      { queries: [{ k: 'a' }, ...elements(300), { k: 1.5 }, 7] },
      { queries: [...elements(300), { x: 1 }], y: 2 },
      { queries: [] },
      { queries: elements(401) },
      { queries: 'a' },
      {},
    ]) {
      const expected = errorOf(() => validateBody(schema, body));
      await assert.rejects(validateLongBody(schema, body, ARRAY), (error: SagittaError) => {
        assert.deepEqual(error.issues, expected.issues);
        return true;
      });
    }
  });
});

describe('a member that is not known', () => {
  const names = z.strictObject({ top_k: z.int(), score_threshold: z.number() }).partial();
  const detailOf = (schema: z.ZodType, body: unknown) =>
    errorOf(() => validateBody(schema, body)).issues.map(({ detail }) => detail);

  it('is answered by the one that was probably meant', () => {
    for (const found of ['topk', 'top-k', 'TopK', 'tpo_k', 'top_']) {
      assert.deepEqual(detailOf(names, { [found]: 1 }), [
        `There is nothing named "${found}" here; did you mean "top_k"?`,
      ]);
    }
    assert.deepEqual(detailOf(names, { scoreThresold: 1 }), [
      'There is nothing named "scoreThresold" here; did you mean "score_threshold"?',
    ]);
  });

  it('is answered by all that are known where it resembles none of them', () => {
    for (const found of ['colour', 'x', '__proto_', 'constructor', 'x'.repeat(64)]) {
      assert.deepEqual(detailOf(names, { [found]: 1 }), [
        `There is nothing named "${found}" here; expected top_k, score_threshold.`,
      ]);
    }
    assert.deepEqual(detailOf(z.strictObject({}), { a: 1 }), [
      'There is nothing named "a" here; expected nothing.',
    ]);
  });

  it('is answered by what is meant by the name that other systems use', () => {
    const write = z.strictObject({ id: z.string(), values: z.any(), metadata: z.any() }).partial();
    const query = z.strictObject({ vector: z.any(), top_k: z.int(), filter: z.any() }).partial();
    for (const [schema, found, meant] of [
      [write, 'vector', 'values'],
      [write, 'embedding', 'values'],
      [write, 'payload', 'metadata'],
      [query, 'limit', 'top_k'],
      [query, 'nResults', 'top_k'],
      [query, 'k', 'top_k'],
      [query, 'query_vector', 'vector'],
      [query, 'embedding', 'vector'],
      [query, 'where', 'filter'],
    ] as const) {
      assert.deepEqual(detailOf(schema, { [found]: 1 }), [
        `There is nothing named "${found}" here; did you mean "${meant}"?`,
      ]);
    }
  });

  it('is cut in the message and in the pointer when it is long', () => {
    for (const [name, shown] of [
      ['x'.repeat(100_000), `${'x'.repeat(64)}…`],
      [`${'x'.repeat(63)}${'\u{1f600}'.repeat(9)}`, `${'x'.repeat(63)}…`],
    ] as const) {
      const [issue] = errorOf(() => validateBody(names, { [name]: 1 })).issues;
      const expected = 'expected top_k, score_threshold.';
      assert.equal(issue?.detail, `There is nothing named "${shown}" here; ${expected}`);
      assert.deepEqual(issue?.location, field(shown));
    }
  });

  it('is compared with those that are known for at most 100 issues', (t) => {
    const known = Object.fromEntries(
      Array.from({ length: 30 }, (_, i) => [`known_${'n'.repeat(i)}`, z.int().optional()]),
    );
    const part = z.strictObject(known);
    const parts = z.strictObject({ parts: z.array(part) });
    const members = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [`knwon_${i}_${'n'.repeat(20)}`, i]),
    );
    // About a megabyte as JSON.
    const body = { parts: Array.from({ length: 150 }, () => members) };
    const toLowerCase = t.mock.method(String.prototype, 'toLowerCase');
    const { issues } = errorOf(() => validateBody(parts, body));
    toLowerCase.mock.restore();
    assert.equal(issues.length, 100);
    // A name is normalized before each comparison: twice itself, and once for each known name.
    const made = toLowerCase.mock.callCount();
    assert.ok(made > 100 && made <= 100 * 32, `${made} names were made plain`);
  });

  it('is found at any depth, each with the names of its own place', () => {
    const nested = z.strictObject({ part: z.array(names), mode: z.string().optional() });
    assert.deepEqual(detailOf(nested, { part: [{}, { top: 1 }], mod: 'x' }).toSorted(), [
      'There is nothing named "mod" here; did you mean "mode"?',
      'There is nothing named "top" here; did you mean "top_k"?',
    ]);
  });
});

describe('a threshold', () => {
  it('is passed by the score that it was, from a reply in JSON or in Arrow', () => {
    const { scoreThreshold } = basicSchemas(DEFAULT_LIMITS);
    fc.assert(
      fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (score) => {
        const shown = score === 0 ? 0 : score;
        assert.equal(scoreThreshold.parse(shown), shown);
        assert.equal(scoreThreshold.parse(Number(float32Text(shown))), shown);
      }),
    );
    assert.equal(scoreThreshold.parse(undefined), undefined);
  });
});

function errorOf(act: () => void): SagittaError {
  try {
    act();
  } catch (error) {
    if (error instanceof SagittaError) return error;
    throw error;
  }
  return assert.fail('it is valid');
}
