// The rules for every reply of every case: the OpenAPI document describes its status, error code and shape, with no
// undeclared members; an error is a problem document; a request id is present; and the cache headers follow the
// contract. Records the operations and codes that have occurred.

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Json, JsonObject } from '../../src/common/types.js';
import type { Incoming, Outgoing } from './exchange.js';
import { valueAt } from './match.js';

const CACHE_CONTROL_OF_OPERATION: Readonly<Record<string, string>> = {
  getCollection: 'private, max-age=30',
  getVector: 'private, no-cache',
  queryCollection: 'no-store',
  query: 'no-store',
};

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly pattern: RegExp;
  readonly responses: JsonObject;
}

export class ReplyRules {
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  readonly #validators = new Map<string, ValidateFunction>();
  readonly #operations: readonly Operation[];
  /** Ids of the operations that have answered 200 so far. */
  readonly answered = new Set<string>();
  readonly codes = new Set<string>();

  constructor(document: JsonObject) {
    this.#ajv.addSchema(closeObjects(document) as JsonObject, 'openapi');
    // A path without placeholders takes precedence over one with placeholders.
    this.#operations = operationsOf(document).sort(
      (a, b) => a.path.split('{').length - b.path.split('{').length,
    );
  }

  get operationIds(): string[] {
    return this.#operations.map(({ id }) => id);
  }

  /** The rules that the reply breaks; empty if it breaks none. */
  check(outgoing: Outgoing, reply: Incoming): string[] {
    const operation = this.#find(outgoing);
    const complaints = [...checkRequestId(outgoing, reply)];
    if (operation !== undefined) complaints.push(...this.#checkDescribed(operation, reply));
    if (reply.status === 200 && operation !== undefined) {
      this.answered.add(operation.id);
      const wanted = CACHE_CONTROL_OF_OPERATION[operation.id];
      if (wanted !== undefined) complaints.push(...checkHeader(reply, 'cache-control', wanted));
    }
    if (reply.status === 304 && reply.text !== '') complaints.push('a 304 has a body');
    if (reply.status >= 400 && outgoing.method !== 'HEAD') {
      complaints.push(...this.#checkProblem(outgoing, reply));
    }
    return complaints;
  }

  #find({ method, path }: Outgoing): Operation | undefined {
    const wanted = method === 'HEAD' ? 'GET' : method;
    const bare = path.replace(/\?.*$/s, '');
    return this.#operations.find(
      (operation) => operation.method === wanted && operation.pattern.test(bare),
    );
  }

  #checkDescribed(operation: Operation, reply: Incoming): string[] {
    const { status, headers, json } = reply;
    const described = operation.responses[status] as JsonObject | undefined;
    if (described === undefined) return [`${operation.id} does not describe the status ${status}`];
    const type = headers['content-type']?.split(';')[0];
    const contents = Object.keys((described.content as JsonObject | undefined) ?? {});
    const content = contents.find((name) => name.split(';')[0] === type);
    if (reply.text === '') return [];
    if (content === undefined) return [`${operation.id} does not describe ${type} for ${status}`];
    if (json === undefined) return [];
    const place = ['paths', operation.path, operation.method.toLowerCase(), 'responses'];
    return this.#validate([...place, String(status), 'content', content, 'schema'], json);
  }

  #validate(path: readonly string[], json: Json): string[] {
    const pointer = path.map((token) => token.replaceAll('~', '~0').replaceAll('/', '~1'));
    const ref = `openapi#/${pointer.map(encodeURIComponent).join('/')}`;
    let validate = this.#validators.get(ref);
    if (validate === undefined) {
      validate = this.#ajv.compile({ $ref: ref });
      this.#validators.set(ref, validate);
    }
    if (validate(json)) return [];
    return validate.errors!.map(
      ({ instancePath, message, params }) =>
        `the reply is not as described: ${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }

  #checkProblem(outgoing: Outgoing, reply: Incoming): string[] {
    const code = String(valueAt(reply.json, '/code'));
    this.codes.add(code);
    const { status, headers } = reply;
    const isReplay = headers['idempotent-replayed'] !== undefined;
    const wanted: Record<string, Json> = {
      '/status': status,
      '/type': `urn:sagitta:error:${code}`,
      '/retryable': status === 429 || status >= 500 || code === 'idempotency_in_flight',
      ...(isReplay
        ? {}
        : {
            '/instance': outgoing.path.replace(/\?.*$/s, ''),
            '/request_id': headers['x-request-id'] ?? null,
          }),
    };
    const complaints = Object.entries(wanted)
      .filter(([pointer, value]) => valueAt(reply.json, pointer) !== value)
      .map(([pointer, value]) => `the problem's ${pointer} is not ${JSON.stringify(value)}`);
    for (const [name, value] of [
      ['content-type', 'application/problem+json; charset=utf-8'],
      ['cache-control', 'no-store'],
    ] as const) {
      complaints.push(...checkHeader(reply, name, value));
    }
    if ((status === 429 || status === 503) && headers['retry-after'] === undefined) {
      complaints.push(`a ${status} has no Retry-After`);
    }
    const operation = this.#find(outgoing);
    const description = valueAt(operation?.responses, `/${status}/description`);
    if (operation !== undefined && !String(description).includes(`\`${code}\``)) {
      complaints.push(`${operation.id} does not describe the code ${code} for ${status}`);
    }
    return complaints.concat(this.#validate(['components', 'schemas', 'Problem'], reply.json!));
  }
}

function checkRequestId({ headers }: Outgoing, reply: Incoming): string[] {
  const sent = headers['x-request-id'];
  const found = reply.headers['x-request-id'];
  if (found === undefined || found === '') return ['there is no X-Request-Id'];
  const isPlain = typeof sent === 'string' && /^[A-Za-z0-9-]{1,64}$/.test(sent);
  return isPlain && found !== sent ? [`X-Request-Id is ${found}, sent was ${sent}`] : [];
}

function checkHeader({ headers }: Incoming, name: string, wanted: string): string[] {
  return headers[name] === wanted ? [] : [`${name} is ${headers[name]}, expected ${wanted}`];
}

function operationsOf(document: JsonObject): Operation[] {
  return Object.entries(document.paths as JsonObject).flatMap(([path, item]) =>
    Object.entries(item as JsonObject).flatMap(([method, described]): Operation[] => {
      const id = valueAt(described, '/operationId');
      if (typeof id !== 'string') return [];
      const isOperational = valueAt(item, '/servers') !== undefined;
      const segments = path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+');
      return [
        {
          id,
          method: method.toUpperCase(),
          path,
          pattern: new RegExp(`^${isOperational ? '' : '(?:/v1)?'}${segments}$`),
          responses: valueAt(described, '/responses') as JsonObject,
        },
      ];
    }),
  );
}

/** Forbids undeclared members in all objects that declare members. */
function closeObjects(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closeObjects);
  if (typeof schema !== 'object' || schema === null) return schema;
  const closed = Object.fromEntries(
    Object.entries(schema).map(([name, member]) => [name, closeObjects(member)]),
  );
  const { properties } = schema;
  const isOpen = schema.type === 'object' && schema.additionalProperties === undefined;
  if (isOpen && properties !== undefined && Object.keys(properties as JsonObject).length > 0) {
    closed.additionalProperties = false;
  }
  return closed;
}
