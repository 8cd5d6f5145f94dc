// The committed OpenAPI document in the form that the fuzzer needs: operations with parameters and bodies.

import { readFileSync } from 'node:fs';
import type { JsonObject } from '../../../src/common/types.js';

/** The part of JSON Schema that the document uses. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly const?: string | number | boolean;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly 'x-json-schema'?: Schema;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: Schema;
}

export interface Operation {
  readonly id: string;
  readonly method: string;
  /** With placeholders such as `{id}`. */
  readonly path: string;
  /** Whether it is also served below `/v1`. */
  readonly isVersioned: boolean;
  readonly parameters: readonly Parameter[];
  /** By content type; empty if there is no body. */
  readonly bodies: Readonly<Record<string, Schema>>;
  /** The content types of replies with status 200. */
  readonly replyTypes: readonly string[];
}

export interface ApiDocument {
  readonly json: JsonObject;
  readonly operations: readonly Operation[];
  readonly schemas: Readonly<Record<string, Schema>>;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Described {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

const METHODS = ['get', 'put', 'post', 'patch', 'delete'] as const;

type PathItem = Partial<Record<(typeof METHODS)[number], Described>> & {
  readonly parameters?: readonly Parameter[];
  readonly servers?: unknown;
};

export function loadDocument(): ApiDocument {
  // Relative to the compiled file in dist/test/hostile/fuzz.
  const path = new URL('../../../../openapi.json', import.meta.url);
  return readDocument(JSON.parse(readFileSync(path, 'utf8')) as JsonObject);
}

function readDocument(json: JsonObject): ApiDocument {
  const { schemas } = json.components as unknown as { schemas: Record<string, Schema> };
  const paths = Object.entries(json.paths as unknown as Record<string, PathItem>);
  const operations = paths.flatMap(([path, item]) =>
    METHODS.flatMap((method): Operation[] => {
      const described = item[method];
      if (described === undefined) return [];
      const { operationId, parameters = [], requestBody, responses } = described;
      const contents = Object.entries(requestBody?.content ?? {});
      return [
        {
          id: operationId,
          method: method.toUpperCase(),
          path,
          isVersioned: item.servers === undefined,
          parameters: [...(item.parameters ?? []), ...parameters],
          bodies: Object.fromEntries(contents.map(([type, { schema }]) => [type, schema])),
          replyTypes: Object.keys(responses['200']?.content ?? {}),
        },
      ];
    }),
  );
  return { json, operations, schemas };
}
