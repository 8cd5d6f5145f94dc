import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { ERROR_TITLES } from '../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { parseVectorsTask } from '../../src/server/bodies/json-rows.js';
import { withoutVersion } from '../../src/server/request-pipeline.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import {
  createFilledService,
  createService,
  documentOf,
  isBeyondDocument,
  type OpenApi,
  type Service,
  schemaOf,
} from './harness.js';
import {
  bodiesOf,
  isEnum,
  isNullable,
  type JsonSchemas,
  mediaOf,
  OPERATIONS_OF_CLUSTERS,
  parametersOf,
  schemasOf,
} from './openapi-document.js';

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

  it('is the one by which the tests of the server check replies', async () => {
    assert.deepEqual(documentOf(service.app, DEFAULT_LIMITS), document);
    const limits = { ...DEFAULT_LIMITS, vectorIdBytesMax: 77 };
    const other = await createService({
      limits,
      defaultCollection: 'c',
      trustedProxies: ['127.0.0.1'],
      memoryBytes: 2 ** 40,
    });
    const served = (await other.app.inject('/openapi.json')).json();
    assert.deepEqual(documentOf(other.app, limits), served);
    assert.notDeepEqual(served, document);
    await other.close();
    const patient = Object.entries(DEFAULT_LIMITS).map(([name, limit]) => [
      name,
      isBeyondDocument(name) ? limit + 1 : limit,
    ]);
    const third = await createService({ limits: Object.fromEntries(patient) });
    assert.deepEqual((await third.app.inject('/openapi.json')).json(), document);
    await third.close();
  });

  it('lists every error code', () => {
    const { enum: codes } = document.components.schemas.ErrorCode as { enum?: string[] };
    assert.deepEqual(codes, Object.keys(ERROR_TITLES));
  });

  it('describes exactly the routes that are served', async () => {
    const operations = Object.entries(document.paths).flatMap(([path, found]) =>
      Object.keys(found)
        .filter((name) => !['parameters', 'servers'].includes(name))
        .map((method) => ({ path, method: method.toUpperCase() as 'GET', found })),
    );
    for (const { path, method, found } of operations) {
      const url = path.replace(/\{(\w+)\}/g, ':$1');
      assert.ok(service.app.hasRoute({ method, url }), path);
      const versioned = await service.app.inject({
        method,
        url: `/v1${path.replace(/[{}]/g, '')}`,
      });
      const isServed = !versioned.body.includes('"route_not_found"');
      assert.equal(isServed, !('servers' in found), `${method} /v1${path}: ${versioned.body}`);
    }
  });

  it('leaves out no version of pages, nor a second one', async () => {
    for (const url of ['/v1/docs', '/v1/console', '/v1', '/v1/', '/v1/v1/limits', '/v2/limits']) {
      const { statusCode } = await service.app.inject({ method: 'GET', url });
      assert.equal(statusCode, 404, url);
    }
    assert.equal(withoutVersion('http://localhost:80/v1/limits?a=/v1/b'), '/limits?a=/v1/b');
    assert.equal(withoutVersion('http://localhost/a/v1/limits'), 'http://localhost/a/v1/limits');
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
    assert.equal(ids.size, 58);
  });

  it('has no dangling references', () => {
    const text = JSON.stringify(document);
    for (const [, kind, name] of text.matchAll(/"#\/components\/(\w+)\/(\w+)"/g)) {
      const components = document.components as unknown as Record<string, Record<string, unknown>>;
      assert.ok(components[kind!]?.[name!], `${kind}/${name}`);
    }
    assert.ok(!text.includes('$defs'));
  });

  it('names, describes and gives an example of every schema', () => {
    for (const [name, schema] of Object.entries(document.components.schemas as JsonSchemas)) {
      assert.ok(schema.description && schema.examples?.length, name);
    }
    const unnamed = new Map<string, string>();
    for (const [place, schema] of schemasOf(document)) {
      for (const [name, member] of Object.entries(schema.properties ?? {})) {
        assert.ok(member.description ?? member.$ref, `${place}.${name} has no description`);
      }
      if (/^\w+$/.test(place)) continue;
      assert.equal(schema.properties, undefined, `${place} is an object without a name`);
      const choices =
        schema.enum ?? schema.oneOf ?? (isNullable(schema) ? undefined : schema.anyOf);
      if (choices === undefined) continue;
      const text = JSON.stringify(choices);
      // Lists in parameters are text, and named schemas are not rewritten.
      if (text.includes('x-json-schema')) continue;
      assert.equal(unnamed.get(text), undefined, `${place} occurs twice without a name`);
      unnamed.set(text, place);
    }
  });

  it('has a format for every number, and no default', () => {
    for (const [place, schema] of schemasOf(document)) {
      const types = [schema.type ?? []].flat();
      const expected = types.includes('string') ? undefined : FORMATS[types[0]!];
      if (expected !== undefined) {
        assert.ok(expected.includes(schema.format!), `${place} has the format ${schema.format}`);
      }
      assert.ok(!('default' in schema), `${place} has a default, which generators make required`);
    }
  });

  it('has parameters that generators can write: each has a schema, a meaning and an example', () => {
    for (const { place, parameter } of parametersOf(document)) {
      const { schema, description, example } = parameter;
      assert.ok(schema !== undefined && description, place);
      const isPlain = schema.type === 'boolean' || schema.enum !== undefined;
      assert.ok(example !== undefined || isPlain || isEnum(document, schema), place);
      const isScalar =
        schema.$ref !== undefined || !['array', 'object'].includes(String(schema.type));
      assert.ok(isScalar, `${place} is not text`);
    }
  });

  it('has examples that are valid by its schemas', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'openapi');
    const check = (pointer: string, example: unknown) => {
      const validate = ajv.compile({ $ref: `openapi#${encodeURI(pointer)}` });
      assert.ok(validate(example), `${pointer}: ${ajv.errorsText(validate.errors)}`);
    };
    for (const [name, { examples }] of Object.entries(document.components.schemas as JsonSchemas)) {
      for (const example of examples!) check(`/components/schemas/${name}`, example);
    }
    for (const { pointer, parameter } of parametersOf(document)) {
      const { schema, example } = parameter;
      if (example === undefined) continue;
      check(`${pointer}/schema`, example);
      if (schema['x-json-schema'] === undefined) continue;
      check(`${pointer}/schema/x-json-schema`, JSON.parse(String(example)));
    }
    for (const { pointer, media } of mediaOf(document)) {
      if (media.schema.format === 'binary') continue;
      assert.ok(media.example !== undefined, `${pointer} has no example`);
      check(`${pointer}/schema`, media.example);
    }
    for (const { value } of Object.values(document.components.examples)) {
      check('/components/schemas/Problem', value);
    }
  });

  it('has examples of bodies that the service accepts', async () => {
    const services = new PreparedServices();
    let count = 0;
    for (const { operationId, method, path, body } of bodiesOf(document)) {
      // The first key ends anonymous access; the tests of keys send the same.
      if (path.startsWith('/keys') || OPERATIONS_OF_CLUSTERS.has(operationId)) continue;
      for (const example of body.examples!) {
        const prepared = await services.prepare(operationId);
        const url = path
          .replace('/collections/{id}', '/collections/articles')
          .replace('{name}', 'articles-live')
          .replace(/\{(id|vector_id)\}/, 'article-17');
        const { status, text } = await prepared.call(method, url, { body: example });
        assert.equal(status, 200, `${operationId}: ${text}`);
        count++;
      }
    }
    await services.close();
    assert.ok(count >= 20);
  });

  it('has examples of the parameters of lists that the service accepts', async () => {
    const services = new PreparedServices();
    const { call } = await services.prepare('listVectorsInCollection');
    let count = 0;
    for (const { place, parameter } of parametersOf(document)) {
      const { name, example } = parameter;
      if (!place.startsWith('GET /collections/{id}/vectors ') || name === 'cursor') continue;
      if (parameter.in !== 'query' || example === undefined) continue;
      const query = `${name}=${encodeURIComponent(String(example))}`;
      const reply = await call('GET', `/collections/articles/vectors?${query}`);
      assert.equal(reply.status, 200, `${place}: ${reply.text}`);
      count++;
    }
    await services.close();
    assert.equal(count, 5);
  });

  it('accepts and rejects vectors as the service does', () => {
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
        const outcomes = [{ '': { kind: 'dense', dimension: 2, metric: 'dot' } } as const, {}].map(
          (shapes) =>
            parseVectorsTask.run({
              body: Buffer.from(text),
              isKeyed: false,
              room: null,
              pathId: null,
              shapes,
              limits: DEFAULT_LIMITS,
            }),
        );
        const result = described.safeParse(JSON.parse(text));
        const isAccepted = outcomes.some(({ outcome }) => outcome.ok);
        // The schema does not know the other rows or the dimension of the collection.
        const isBeyond =
          outcomes.some(
            ({ outcome }) => !outcome.ok && BEYOND_SCHEMA.includes(outcome.error.code),
          ) || isMixed(JSON.parse(text));
        // A string as values may or may not be base64 of the right length.
        const isText = /"values":"x"/.test(text);
        if (isAccepted) acceptedCount++;
        if (!isBeyond && !isText) assert.equal(result.success, isAccepted, text);
      }),
      { seed, numRuns: IS_NIGHTLY ? 2_000 : 600 },
    );
    assert.ok(acceptedCount > 15);
  });
});

/** A service with the objects that the examples refer to, but without those that they create. */
class PreparedServices {
  readonly #services = new Map<string, Service>();

  /** The same service for most operations, with its vectors restored. */
  async prepare(operationId: string): Promise<Service> {
    const absent = CREATED[operationId] ?? '';
    const service = this.#services.get(absent) ?? (await createServiceWithout(absent));
    this.#services.set(absent, service);
    if (absent !== 'articles') await service.call('POST', '/collections/articles/vectors', ROWS);
    return service;
  }

  async close(): Promise<void> {
    for (const service of this.#services.values()) await service.close();
  }
}

/** The collections that the examples of these operations create. */
const CREATED: Readonly<Record<string, string>> = {
  createCollection: 'articles',
  renameCollection: 'articles-2025',
};

const ROWS = {
  body: {
    vectors: ['article-4', 'article-17', 'article-18'].map((id, index) => ({
      id,
      values: [1, index, 0.5],
      metadata: { year: 2020 + index, lang: 'en' },
    })),
  },
};

async function createServiceWithout(absent: string): Promise<Service> {
  const service = await createService();
  for (const id of ['articles', 'articles-2025', 'products']) {
    if (id === absent) continue;
    await service.call('POST', '/collections', { body: { id, dimension: 3 } });
  }
  await service.call('PUT', '/aliases/articles-next', { body: { collection: 'products' } });
  return service;
}

const FORMATS: Readonly<Record<string, readonly string[]>> = {
  integer: ['int32', 'int64'],
  number: ['float', 'double'],
};

const BEYOND_SCHEMA = ['dimension_mismatch', 'duplicate_id'];

/** Whether the rows fit a collection with the unnamed vector, and one without it. */
function isMixed(body: object): boolean {
  const { vectors } = body as { readonly vectors?: unknown };
  const rows: unknown[] = Array.isArray(vectors) ? vectors : [];
  const has = (row: unknown, name: string) =>
    typeof row === 'object' && row !== null && Object.hasOwn(row, name);
  const isBare = (row: unknown) => !has(row, 'values') && !has(row, 'embed');
  return rows.some((row) => has(row, 'values')) && rows.some(isBare);
}
