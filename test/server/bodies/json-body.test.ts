import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { createThreadPool } from '../../../src/platform/pool.js';
import {
  type JsonBody,
  type ParsedBody,
  parseJson,
  parseJsonInput,
  parseJsonTask,
} from '../../../src/server/bodies/json-body.js';
import { parseBothWays } from '../../support/both-readers.js';

function parse(body: string | Uint8Array, isKeyed = false): ParsedBody<JsonBody> {
  const input = { body: Buffer.from(body), isKeyed, vectorsAt: 'vector', dimensionMax: 4 } as const;
  return parseBothWays((cut) => parseJsonInput(input, cut));
}

function refuse(body: string): string {
  const { outcome } = parse(body);
  assert.ok(!outcome.ok);
  return `${outcome.error.code}: ${outcome.error.detail}`;
}

describe('a JSON body', () => {
  it('is an object, in which the vector is a Float32Array', () => {
    const { outcome } = parse('{"vector":[1,0.1],"filter":{"a":[1]}}');
    assert.ok(outcome.ok);
    assert.deepEqual(outcome.value, { vector: Float32Array.of(1, 0.1), filter: { a: [1] } });
    assert.match(refuse('{"vector":[1,2,3,4,5]}'), /^limit_exceeded: .*1 to 4 elements; found 5/);
    assert.match(refuse('{"vector":{"0":1}}'), /^invalid_vector/);
  });

  it('has a digest if there is a key in header or body, also when it is rejected', () => {
    const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
    assert.equal(parse('{"a":1}').digest, undefined);
    assert.equal(parse('{"a":1}', true).digest, digestOf('{"a":1}'));
    const keyed = '{"idempotency_key":"k","vector":"no"}';
    const parsed = parse(keyed);
    assert.deepEqual(
      [parsed.idempotencyKey, parsed.digest, parsed.outcome.ok],
      ['k', digestOf(keyed), false],
    );
  });

  it('is rejected when it exceeds every valid body', () => {
    const members = (count: number) =>
      Array.from({ length: count }, (_, i) => `"key-${i}":1`).join(',');
    assert.match(refuse(`{"labels":{${members(10_001)}}}`), /^limit_exceeded: .*10000 members/);
    assert.match(refuse(`{${members(10_001)}}`), /^limit_exceeded: .*10000 members/);
    const ones = (count: number) => new Array(count).fill(1).join(',');
    assert.match(refuse(`{"ids":[${ones(1_000_001)}]}`), /^limit_exceeded: .*1000000 values/);
    const lists = new Array(3).fill(`[${ones(400_000)}]`).join(',');
    assert.match(refuse(`{"a":{"b":[${lists}]}}`), /^limit_exceeded: .*1000000 values/);
    assert.ok(parse(`{"labels":{${members(10_000)}},"ids":[${ones(900_000)}]}`).outcome.ok);
  });

  it('is refused by its depth where the reader of long integers cannot follow', () => {
    const body = Buffer.from(`${'['.repeat(50_000)}${2n ** 63n - 1n}${']'.repeat(50_000)}`);
    const options = { bracketsUnchecked: 200_000, exactMembers: null };
    assert.throws(() => parseJson(body, 'The body', options), /: it nests too deeply\.$/);
  });

  it('reaches the event loop from a worker however it nests, or is refused', async () => {
    const pool = createThreadPool({ threadCount: 1 });
    try {
      for (const depth of [100, 950, 19_000, 2_000_000]) {
        const body = Buffer.from(`{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`);
        const { outcome } = await pool.run(parseJsonTask, {
          body,
          isKeyed: false,
          vectorsAt: null,
          dimensionMax: 4,
        });
        assert.equal(outcome.ok, depth < 1000);
      }
    } finally {
      await pool.close();
    }
  });
});
