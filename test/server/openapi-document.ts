// Walks the OpenAPI document: its schemas, parameters, contents and bodies, each with its location.

import type { OpenApi } from './harness.js';

/** Operations that fail outside a cluster; they are covered by tests of clusters (drain, moves, servers). */
export const OPERATIONS_OF_CLUSTERS: ReadonlySet<string> = new Set([
  'drainNode',
  'undrainNode',
  'moveCollection',
]);

export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
  /** The schema of the JSON in a string. */
  readonly 'x-json-schema'?: JsonSchema;
  readonly properties?: JsonSchemas;
  readonly description?: string;
  readonly examples?: readonly unknown[];
}
export type JsonSchemas = Readonly<Record<string, JsonSchema>>;

/** Every schema of the document with its location, which is the name of a named one. */
export function* schemasOf(document: OpenApi): Generator<[string, JsonSchema]> {
  for (const [name, schema] of Object.entries(document.components.schemas as JsonSchemas)) {
    yield* partsOf(name, schema);
  }
  for (const { place, parameter } of parametersOf(document))
    yield* partsOf(place, parameter.schema);
  for (const { pointer, media } of mediaOf(document)) yield* partsOf(pointer, media.schema);
}

function* partsOf(place: string, schema: JsonSchema): Generator<[string, JsonSchema]> {
  yield [place, schema];
  const { items, additionalProperties, anyOf = [], oneOf = [], properties } = schema;
  const contents = schema['x-json-schema'];
  for (const part of [items, additionalProperties, contents, ...anyOf, ...oneOf]) {
    if (typeof part === 'object') yield* partsOf(`${place}/…`, part);
  }
  for (const [name, member] of Object.entries(properties ?? {})) {
    yield* partsOf(`${place}/${name}`, member);
  }
}

/** Whether the schema is a nullable one. */
export function isNullable({ anyOf = [] }: JsonSchema): boolean {
  return anyOf.length === 2 && anyOf[1]!.type === 'null';
}

export function isEnum(document: OpenApi, { $ref = '' }: JsonSchema): boolean {
  const named = (document.components.schemas as JsonSchemas)[$ref.split('/').at(-1)!];
  return named?.enum !== undefined;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: JsonSchema;
  readonly description?: string;
  readonly example?: unknown;
}
interface Media {
  readonly schema: JsonSchema;
  readonly example?: unknown;
}
interface Described {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, Media>> }>
  >;
}

/** The operations with their JSON pointers; the parameters of a path are an operation named `parameters`. */
function* operationsOf(document: OpenApi) {
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      if (method === 'servers') continue;
      const pointer = `/paths/${path.replaceAll('/', '~1')}/${method}`;
      yield { path, method, pointer, operation: operation as unknown as Described };
    }
  }
}

export function* parametersOf(document: OpenApi) {
  for (const { path, method, pointer, operation } of operationsOf(document)) {
    const isShared = Array.isArray(operation);
    const parameters = isShared ? (operation as readonly Parameter[]) : operation.parameters;
    for (const [index, parameter] of (parameters ?? []).entries()) {
      yield {
        place: `${method.toUpperCase()} ${path} ${parameter.name}`,
        pointer: `${pointer}/${isShared ? '' : 'parameters/'}${index}`,
        parameter,
      };
    }
  }
}

/** The contents of requests and of successful replies. */
export function* mediaOf(document: OpenApi) {
  for (const { pointer, operation } of operationsOf(document)) {
    const parts = {
      requestBody: operation.requestBody?.content,
      'responses/200': operation.responses?.['200']?.content,
    };
    for (const [part, content] of Object.entries(parts)) {
      for (const [type, media] of Object.entries(content ?? {})) {
        yield { pointer: `${pointer}/${part}/content/${type.replaceAll('/', '~1')}`, media };
      }
    }
  }
}

/** The operations with a JSON body, and the schemas of these. */
export function* bodiesOf(document: OpenApi) {
  for (const { path, method, operation } of operationsOf(document)) {
    const { $ref } = operation.requestBody?.content['application/json']?.schema ?? {};
    if ($ref === undefined) continue;
    const body = (document.components.schemas as JsonSchemas)[$ref.split('/').at(-1)!]!;
    yield { operationId: operation.operationId, method: method.toUpperCase(), path, body };
  }
}
