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

function errorOf(act: () => void): SagittaError {
  try {
    act();
  } catch (error) {
    if (error instanceof SagittaError) return error;
    throw error;
  }
  return assert.fail('it is valid');
}
