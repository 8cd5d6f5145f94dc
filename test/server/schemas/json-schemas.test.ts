import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { z } from 'zod';
import { convertSchemas } from '../../../src/server/schemas/json-schemas.js';

describe('the JSON Schema of a zod schema', () => {
  const convert = (schema: z.ZodType) => convertSchemas({ schema }).properties.schema;

  it('says a default in words, after the description', () => {
    const described = z.boolean().default(true).meta({ description: 'Whether.' });
    assert.deepEqual(convert(described), {
      type: 'boolean',
      description: 'Whether. By default `true`.',
    });
    assert.deepEqual(convert(z.string().default('a')), {
      type: 'string',
      description: 'By default `a`.',
    });
  });

  it('has for integers the format that holds their bounds', () => {
    assert.deepEqual(convert(z.int()), { type: 'integer', format: 'int64' });
    const small = { type: 'integer', format: 'int32', minimum: 0, maximum: 2 ** 31 - 1 };
    assert.deepEqual(
      convert(
        z
          .int()
          .min(0)
          .max(2 ** 31 - 1),
      ),
      small,
    );
    const large = { type: 'integer', format: 'int64', minimum: 0, maximum: 2 ** 31 };
    assert.deepEqual(
      convert(
        z
          .int()
          .min(0)
          .max(2 ** 31),
      ),
      large,
    );
  });

  it('joins a plain type with null, but not an enumeration, which would lack it', () => {
    const time = { type: ['string', 'null'], format: 'date-time' };
    assert.deepEqual(convert(z.iso.datetime().nullable()), time);
    assert.deepEqual(convert(z.enum(['a', 'b']).nullable()), {
      anyOf: [{ type: 'string', enum: ['a', 'b'] }, { type: 'null' }],
    });
  });

  it('converts the members of objects, arrays and unions alike', () => {
    const inner = z.object({ a: z.array(z.union([z.number(), z.record(z.string(), z.int())])) });
    assert.deepEqual(convert(inner)!.properties!.a, {
      type: 'array',
      items: {
        anyOf: [
          { type: 'number', format: 'double' },
          { type: 'object', additionalProperties: { type: 'integer', format: 'int64' } },
        ],
      },
    });
  });

  it('makes a component of what has an id, and refers to it', () => {
    const named = z.int().min(1).meta({ id: 'JsonSchemasTestCount', description: 'A count.' });
    const { properties, components } = convertSchemas({ one: named, two: z.array(named) });
    const ref = { $ref: '#/components/schemas/JsonSchemasTestCount' };
    assert.deepEqual(properties, { one: ref, two: { type: 'array', items: ref } });
    assert.deepEqual(components.JsonSchemasTestCount, {
      type: 'integer',
      format: 'int64',
      minimum: 1,
      description: 'A count.',
    });
  });
});
