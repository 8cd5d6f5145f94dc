// Merge patches on text against RFC 7396 on values, and the spelling that they must keep.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import type { Json, JsonObject } from '../../../src/common/types.js';
import { applyMergePatch } from '../../../src/database/collection/merge-patch.js';

const LIMITS = { ...DEFAULT_LIMITS, metadataDepthMax: 100 };

/** RFC 7396, section 2, on values. */
function mergeValues(target: Json | undefined, patch: Json): Json {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof target === 'object' && target !== null && !Array.isArray(target);
  const merged: JsonObject = Object.assign(Object.create(null), isObject ? target : {});
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = mergeValues(Object.hasOwn(merged, key) ? merged[key] : undefined, value);
  }
  return merged;
}

/**
 * Whether V8 takes a member named by an escaped quote for one named by a backslash after it has parsed such an object,
 * as in Node 24 and 26. The expected values come from JSON.parse, so they would be wrong.
 */
function confusesEscapes(): boolean {
  JSON.parse('{"a":1,"\\\\":2}');
  return Object.keys(JSON.parse('{"a":1,"\\"":2}'))[1] !== '"';
}

describe('a merge patch of metadata', () => {
  it('gives the value that RFC 7396 gives, whatever the spacing', () => {
    const keys = ['a', 'b', 'c d', '"', '\\', '{', 'ä', '__proto__', ''];
    const key = fc.constantFrom(
      ...keys.filter((name) => !confusesEscapes() || !/["\\]/.test(name)),
    );
    const { object } = fc.letrec<{ object: JsonObject; value: Json }>((tie) => ({
      object: fc.dictionary(key, tie('value'), { maxKeys: 4 }) as fc.Arbitrary<JsonObject>,
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<Json>(null, true, 0, -1.5e9, 'x', '}{][",:\\', '\u2028'),
        fc.array(fc.constantFrom<Json>(1, 'y,]', null), { maxLength: 3 }) as fc.Arbitrary<Json>,
        tie('object'),
      ),
    }));
    fc.assert(
      fc.property(object, object, fc.constantFrom(0, 1, '\t'), (target, patch, space) => {
        const text = applyMergePatch(
          JSON.stringify(target, null, space),
          JSON.stringify(patch, null, space),
          LIMITS,
        );
        assert.equal(JSON.stringify(JSON.parse(text)), JSON.stringify(mergeValues(target, patch)));
      }),
      { numRuns: 2_000 },
    );
  });

  it('keeps the spelling of members that it does not name and of values that it sets', () => {
    const target = '{ "big": 12345678901234567890, "x\\u0041": 1.0, "deep": {"n": 1e2, "m": 2} }';
    const patch = '{"new": 1.50, "deep": {"m": 3.0}}';
    assert.equal(
      applyMergePatch(target, patch, LIMITS),
      '{"big":12345678901234567890,"x\\u0041":1.0,"deep":{"n":1e2,"m":3.0},"new":1.50}',
    );
  });

  it('is rejected when the result is too long or too deep', () => {
    const limits = { ...DEFAULT_LIMITS, metadataBytesMax: 20, metadataDepthMax: 2 };
    assert.throws(() => applyMergePatch('{"a":"0123456789"}', '{"b":1234}', limits), {
      code: 'invalid_metadata',
      message: /27 bytes; the limit is 20/,
    });
    assert.throws(() => applyMergePatch('{"a":{}}', '{"a":{"b":{}}}', limits), {
      code: 'invalid_metadata',
      message: /3 levels; the limit is 2/,
    });
  });
});
