// The declared types of metadata: the type that a value at a path must have. Paths are those of filters. Absent
// and null values pass, and undeclared paths may have any value.

import { type FieldPath, field, validationError } from '../../common/errors.js';
import { isJsonNumber, parseExactJson } from '../../common/exact-json.js';
import { isJsonObject, resolvePath } from '../../common/metadata-path.js';
import type { DeclaredType, DeclaredTypes, Json, JsonObject } from '../../common/types.js';
import { parseInstant } from '../../filter/instant.js';
import type { CommitLog } from '../../storage/commit-log.js';
import type { StoreOperation } from '../../storage/store.js';
import { keys } from '../layout/keys.js';
import { type CollectionDefinition, encodeJson } from '../layout/manifest.js';
import type { Collection } from './collection.js';
import { rowsOf } from './snapshot.js';
import type { Write } from './writer.js';

const isString = (value: Json) => typeof value === 'string';
const isInteger = (value: Json) => typeof value === 'bigint' || Number.isInteger(value);
const isBoolean = (value: Json) => typeof value === 'boolean';
const isDate = (value: Json) => typeof value === 'string' && parseInstant(value) !== null;
const arrayOf = (test: (value: Json) => boolean) => (value: Json) =>
  Array.isArray(value) && value.every(test);

const TESTS = {
  string: isString,
  number: isJsonNumber,
  integer: isInteger,
  boolean: isBoolean,
  date: isDate,
  object: isJsonObject,
  'string[]': arrayOf(isString),
  'number[]': arrayOf(isJsonNumber),
  'integer[]': arrayOf(isInteger),
  'boolean[]': arrayOf(isBoolean),
  'date[]': arrayOf(isDate),
} as const satisfies Record<DeclaredType, (value: Json) => boolean>;

interface TypeViolation {
  /** The declared path. */
  readonly path: string;
  /** The members that lead to the value. */
  readonly members: FieldPath;
  /** A sentence that does not name the vector. */
  readonly detail: string;
  readonly expected: DeclaredType;
}

/** The first violation in `metadata`, the JSON text of an object; null for none. */
export function findTypeViolation(
  types: DeclaredTypes | null,
  metadata: string,
): TypeViolation | null {
  if (types === null) return null;
  const document = parseExactJson(metadata) as JsonObject;
  for (const [path, expected] of Object.entries(types)) {
    const value = resolvePath(document, path);
    if (value == null || TESTS[expected](value)) continue;
    const members = Object.hasOwn(document, path) ? [path] : path.split('.');
    const detail = `The value at "${path}" is ${describe(value)}; the schema of the collection declares ${expected}.`;
    return { path, members, detail, expected };
  }
  return null;
}

function describe(value: Json): string {
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return 'a string that does not fit';
  return isJsonNumber(value) ? `the number ${value}` : `${value}`;
}

/** Rows checked between two yields to the event loop, in a few milliseconds. */
const YIELD_ROWS = 1_024;

/**
 * The write that puts a definition with new types into effect. It checks all existing vectors, including those of
 * earlier writes; later writes are checked against the new types. It is committed to `log`, the log of the catalogue.
 * Throws `invalid_metadata` for a vector that does not fit.
 */
export function declareTypes(
  collection: Collection,
  definition: CollectionDefinition,
  types: DeclaredTypes | null,
  { log, alsoCommit }: { readonly log: CommitLog; readonly alsoCommit: readonly StoreOperation[] },
): Write<void> {
  return {
    reads: 'all',
    async prepare() {
      if (types !== null) await checkRows(collection, types);
      const key = keys.collection(definition.id);
      return {
        operations: [{ kind: 'put', key, value: encodeJson(definition) }, ...alsoCommit],
        log,
        result: undefined,
        apply: () => collection.redefine(definition),
      };
    },
  };
}

async function checkRows(collection: Collection, types: DeclaredTypes): Promise<void> {
  let seenCount = 0;
  for (const { segment, row } of rowsOf(collection.snapshot().views)) {
    if (++seenCount % YIELD_ROWS === 0) await new Promise((resolve) => setImmediate(resolve));
    const violation = findTypeViolation(types, segment.metadata(row));
    if (violation === null) continue;
    const { path, expected } = violation;
    const detail = `The vector "${segment.id(row)}" does not fit: ${violation.detail}`;
    const location = field('schema', path);
    throw validationError([{ location, code: 'invalid_metadata', detail, expected }]);
  }
}
