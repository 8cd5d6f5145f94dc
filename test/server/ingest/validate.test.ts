import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { z } from 'zod';
import { SagittaError } from '../../../src/common/errors.js';
import { validateBody, validateLongBody } from '../../../src/server/ingest/validate.js';

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
    for (const found of ['limit', 'k', 'x'.repeat(1_000), '__proto_']) {
      assert.deepEqual(detailOf(names, { [found]: 1 }), [
        `There is nothing named "${found}" here; expected top_k, score_threshold.`,
      ]);
    }
    assert.deepEqual(detailOf(z.strictObject({}), { a: 1 }), [
      'There is nothing named "a" here; expected nothing.',
    ]);
  });

  it('is found at any depth, each with the names of its own place', () => {
    const nested = z.strictObject({ part: z.array(names), mode: z.string().optional() });
    assert.deepEqual(detailOf(nested, { part: [{}, { top: 1 }], mod: 'x' }).toSorted(), [
      'There is nothing named "mod" here; did you mean "mode"?',
      'There is nothing named "top" here; did you mean "top_k"?',
    ]);
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
