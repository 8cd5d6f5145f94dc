import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { ERROR_TITLES } from '../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { parseVectorsTask } from '../../src/server/ingest/json-rows.js';
import { createSchemas } from '../../src/server/schemas/all.js';
import { createFilledService, type OpenApi, type Service, schemaOf } from './harness.js';

const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 2 ** 31);
console.log(`SAGITTA_TEST_SEED=${seed}`);

describe('the OpenAPI document', () => {
  let service: Service;
  let document: OpenApi;
  before(async () => {
    service = await createFilledService();
    document = (await service.app.inject('/openapi.json')).json();
  });
  after(() => service.close());

  it('equals openapi.json', () => {
    const path = new URL('openapi.json', rootUrl());
    const isSame = isDeepStrictEqual(JSON.parse(readFileSync(path, 'utf8')), document);
    assert.ok(isSame, 'openapi.json is not what the service says: run scripts/docs/openapi.mjs');
  });

  it('lists every error code', () => {
    const { enum: codes } = document.components.schemas.ErrorCode as { enum?: string[] };
    assert.deepEqual(codes, Object.keys(ERROR_TITLES));
  });

  it('describes exactly the routes that are served', () => {
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const method of Object.keys(operations)) {
        if (['parameters', 'servers'].includes(method)) continue;
        const url = path.replace(/\{(\w+)\}/g, ':$1');
        assert.ok(service.app.hasRoute({ method: method.toUpperCase() as 'GET', url }), path);
        const isOperational = 'servers' in operations;
        const versioned = { method: method.toUpperCase() as 'GET', url: `/v1${url}` };
        assert.equal(service.app.hasRoute(versioned), !isOperational, path);
      }
    }
    assert.ok(service.app.hasRoute({ method: 'GET', url: '/v1/collections' }));
  });

  it('has an id, a summary, a tag and statuses for each operation', () => {
    const ids = new Set<string>();
    for (const operations of Object.values(document.paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        if (['parameters', 'servers'].includes(method)) continue;
        const { operationId, summary, tags, responses } = operation as unknown as {
          operationId: string;
          summary: string;
          tags: string[];
          responses: Record<string, unknown>;
        };
        assert.ok(
          summary && tags.length === 1 && responses['200'] && responses['400'],
          operationId,
        );
        ids.add(operationId);
      }
    }
    assert.equal(ids.size, 49);
  });

  it('has no dangling references', () => {
    const text = JSON.stringify(document);
    for (const [, kind, name] of text.matchAll(/"#\/components\/(\w+)\/(\w+)"/g)) {
      const components = document.components as unknown as Record<string, Record<string, unknown>>;
      assert.ok(components[kind!]?.[name!], `${kind}/${name}`);
    }
    assert.ok(!text.includes('$defs'));
  });

  it('has examples that are valid by its schemas', () => {
    let count = 0;
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      const { examples = [] } = schema as { examples?: unknown[] };
      for (const example of examples) {
        count++;
        const result = schemaOf(document, schema).safeParse(example);
        assert.ok(result.success, `${name}: ${JSON.stringify(result.error?.issues)}`);
      }
    }
    assert.ok(count >= 20);
  });

  it('has examples of bodies that the service accepts', async () => {
    const schemas = document.components.schemas as unknown as Record<
      string,
      { examples: object[] }
    >;
    for (const [name, method, url] of [
      ['CollectionCreate', 'POST', '/collections'],
      ['CollectionUpdate', 'PATCH', '/collections/c'],
      ['VectorBatchWrite', 'POST', '/collections/c/vectors'],
      ['VectorInput', 'POST', '/collections/c/vectors'],
      ['VectorPutInCollection', 'PUT', '/collections/c/vectors/x'],
      ['VectorPatch', 'PATCH', '/collections/c/vectors/a'],
      ['VectorFetch', 'POST', '/collections/c/vectors/fetch'],
      ['VectorCount', 'POST', '/collections/c/count'],
      ['Query', 'POST', '/collections/c/query'],
      ['VectorDelete', 'POST', '/collections/c/vectors/delete'],
    ] as const) {
      for (const body of schemas[name]!.examples) {
        const { status, text } = await service.call(method, url, { body });
        assert.equal(status, 200, `${name}: ${text}`);
      }
    }
  });

  it('accepts and rejects vectors as the service does', () => {
    const { write } = createSchemas(DEFAULT_LIMITS).vectors;
    const described = schemaOf(document, { $ref: '#/components/schemas/VectorWrite' });
    const odd = fc.constantFrom(undefined, null, 1, 'x', [], {}, true);
    const values = fc.oneof({ weight: 8, arbitrary: fc.constant([1, 2]) }, odd);
    const embed = fc.oneof({ weight: 8, arbitrary: fc.constant('text') }, odd);
    const others = {
      id: fc.oneof({ weight: 8, arbitrary: fc.uuid() }, odd),
      metadata: fc.oneof({ weight: 8, arbitrary: fc.constant({ a: 1 }) }, odd),
      extra: odd,
    };
    const vector = fc.oneof(
      { weight: 6, arbitrary: fc.record({ ...others, values }, { requiredKeys: ['values'] }) },
      { weight: 2, arbitrary: fc.record({ ...others, embed }, { requiredKeys: ['embed'] }) },
      fc.record({ ...others, values, embed }, { requiredKeys: [] }),
    );
    const rest = { mode: fc.oneof(fc.constantFrom('upsert', 'insert', 'update'), odd) };
    const batch = fc.record(
      {
        vectors: fc.oneof({ weight: 8, arbitrary: fc.array(vector, { maxLength: 2 }) }, odd),
        ...rest,
      },
      { requiredKeys: ['vectors'] },
    );
    const single = fc.tuple(vector, fc.record(rest, { requiredKeys: [] }));
    const body = fc.oneof(
      batch,
      single.map(([members, more]) => ({ ...members, ...more })),
    );
    let acceptedCount = 0;
    fc.assert(
      fc.property(body, (sent) => {
        const text = JSON.stringify(sent);
        const outcomes = [{ dimension: 2, metric: 'dot' } as const, {}].map((shape) =>
          parseVectorsTask.run({
            body: Buffer.from(text),
            isKeyed: false,
            room: null,
            pathId: null,
            shape,
            limits: DEFAULT_LIMITS,
          }),
        );
        const result = described.safeParse(JSON.parse(text));
        const isAccepted = outcomes.some(({ outcome }) => outcome.ok);
        // The schema does not know other rows, the dimension of the collection, and whether it has one.
        const isBeyond =
          outcomes.some(
            ({ outcome }) => !outcome.ok && BEYOND_SCHEMA.includes(outcome.error.code),
          ) || isMixed(JSON.parse(text));
        // A string as values may or may not be base64 of the right length.
        const isText = /"values":"x"/.test(text);
        if (isAccepted) acceptedCount++;
        if (!isBeyond && !isText) assert.equal(result.success, isAccepted, text);
      }),
      { seed, numRuns: 2000 },
    );
    assert.ok(acceptedCount > 50);
    assert.ok(write);
  });
});

const BEYOND_SCHEMA = ['dimension_mismatch', 'duplicate_id'];

/** Whether the rows are for a collection with the unnamed vector and for one without it. */
function isMixed(body: object): boolean {
  const { vectors } = body as { readonly vectors?: unknown };
  const rows: unknown[] = Array.isArray(vectors) ? vectors : [];
  const has = (row: unknown, name: string) =>
    typeof row === 'object' && row !== null && Object.hasOwn(row, name);
  const isBare = (row: unknown) => !has(row, 'values') && !has(row, 'embed');
  return rows.some((row) => has(row, 'values')) && rows.some(isBare);
}

/** The root of the repository, from wherever the compiled test lies in it. */
function rootUrl(): URL {
  const isCompiled = import.meta.url.includes('/dist/test/');
  return new URL(isCompiled ? '../../../' : '../../', import.meta.url);
}
