// Parses a JSON body on any thread: strict UTF-8, bounded nesting and size, the idempotency key and the digest.
// Imports no schemas, so that workers need not load them.

import { isAscii, isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import {
  type ErrorMessage,
  field,
  ISSUES_MAX,
  type IssueLocation,
  rowField,
  type SagittaError,
  toErrorMessage,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import { type ExactMembers, parseExactJson } from '../../common/exact-json.js';
import { isJsonObject } from '../../common/metadata-path.js';
import {
  CUT,
  type CutVectors,
  cutVectors,
  type VectorMembers,
  type VectorsCut,
} from '../../formats/json/cut-vectors.js';
import type { Task } from '../../platform/pool.js';
import { readVector } from './dense-vectors.js';

/** The deepest valid body is a filter of depth 16, each level of which takes two or three levels of JSON. */
const JSON_DEPTH_MAX = 128;
/**
 * Cloning to another thread takes stack frames per level. This many brackets are harmless even if all of them nest,
 * so the depth of such a body is not checked.
 */
const BRACKETS_UNCHECKED = 1_000;
/**
 * The garbage collector visits every object repeatedly while JSON.parse runs: 21 million empty objects, which fit into
 * 64 MB, block a worker for a minute. 10 000 vectors with metadata contain about 40 000 objects and arrays.
 */
const BRACKETS_MAX = 1_000_000;
/** Members of one object outside a batch of vectors. The largest valid object is metadata of 40 KB. */
const MEMBERS_MAX = 10_000;
/** Values of a body outside a batch of vectors, all of which are read on the event loop. */
const VALUES_MAX = 1_000_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;

export type JsonBody = Record<string, unknown>;

/**
 * A parsed body. Key and digest are present even if the body is invalid, so that the error can be stored under the
 * idempotency key like any other reply.
 */
export interface ParsedBody<Value> {
  readonly outcome:
    | { readonly ok: true; readonly value: Value }
    | { readonly ok: false; readonly error: ErrorMessage };
  /** The member `idempotency_key`, not validated. */
  readonly idempotencyKey: unknown;
  /** SHA-256 of the body; only if there is a key, in the body or (`isKeyed`) in a header. */
  readonly digest: string | undefined;
}

export interface BodyInput {
  readonly body: Uint8Array;
  /** Whether the request has an idempotency key in a header. */
  readonly isKeyed: boolean;
}

/** The text that was parsed. */
export interface JsonText {
  readonly bytes: Uint8Array;
  /** The vectors that were cut out of the text, each of which left a CUT; null if none were. */
  readonly vectors: VectorsCut | null;
}

type ReadBody<Value> = (json: JsonBody, text: JsonText) => Value;

export interface BodyOptions {
  readonly places: VectorMembers | null;
  readonly dimensionMax: number;
  /**
   * The number of brackets up to which the depth is not checked. The check takes a third as long as parsing. A reader
   * that neither descends into deep values nor clones them can raise this to what JSON.parse can take, at 50 bytes per
   * level.
   */
  readonly bracketsUnchecked?: number;
  /** See `CutOptions`. */
  readonly room?: Uint8Array | null;
  /** Tests replace this with a function that cuts nothing. */
  readonly cut: CutVectors;
}

/**
 * Parses the body and reads a value from it; the outcome is an error if `read` throws. The text without its vectors
 * is used only for valid bodies: errors refer to the whole text.
 */
export function parseBody<Value>(
  { body, isKeyed }: BodyInput,
  read: ReadBody<Value>,
  { places, dimensionMax, room = null, cut, bracketsUnchecked = BRACKETS_UNCHECKED }: BodyOptions,
): ParsedBody<Value> {
  const vectors = places && cut(body, { ...places, dimensionMax, isLines: false, room });
  const short =
    vectors === null ? null : readText({ bytes: vectors.rest, vectors }, read, bracketsUnchecked);
  const { outcome, idempotencyKey } =
    short?.outcome.ok === true
      ? short
      : readText({ bytes: body, vectors: null }, read, bracketsUnchecked);
  const isDigestNeeded = isKeyed || idempotencyKey !== undefined;
  const digest = isDigestNeeded ? createHash('sha256').update(body).digest('hex') : undefined;
  return { outcome, idempotencyKey, digest };
}

function readText<Value>(
  text: JsonText,
  read: ReadBody<Value>,
  bracketsUnchecked: number,
): Omit<ParsedBody<Value>, 'digest'> {
  let idempotencyKey: unknown;
  try {
    const json = parseJsonObject(text, bracketsUnchecked);
    idempotencyKey = json.idempotency_key;
    return { outcome: { ok: true, value: read(json, text) }, idempotencyKey };
  } catch (error) {
    return { outcome: { ok: false, error: toErrorMessage(error) }, idempotencyKey };
  }
}

export interface JsonInput extends BodyInput {
  /** The members to convert to Float32Arrays of any length up to the maximum. */
  readonly vectorsAt: VectorsAt | null;
  readonly dimensionMax: number;
}

/**
 * A member that is a vector (`vector`, `values`), an array of vectors (`vectors`), or an array of objects with a member
 * `vector` (`queries`).
 */
export type VectorsAt = 'vector' | 'values' | 'vectors' | 'queries';

const PLACES: Readonly<Record<VectorsAt, VectorMembers>> = {
  vector: { member: 'vector', list: '', listMember: '' },
  values: { member: 'values', list: '', listMember: '' },
  vectors: { member: '', list: 'vectors', listMember: '' },
  queries: { member: '', list: 'queries', listMember: 'vector' },
};

/** For smaller bodies, `checkExtent` costs more than it saves. */
const SMALL_BYTES_MAX = 64 * 1024;

/** Parses any body except vectors to write. A schema validates the result on the event loop. */
export const parseJsonTask: Task<JsonInput, ParsedBody<JsonBody>> = {
  name: 'ingest.parseJson',
  run: (input) => parseJsonInput(input, cutVectors),
};

/** `cut`: see `BodyOptions`. */
export function parseJsonInput(input: JsonInput, cut: CutVectors): ParsedBody<JsonBody> {
  const { body, vectorsAt, dimensionMax } = input;
  const places = vectorsAt === null ? null : PLACES[vectorsAt];
  const read = (json: JsonBody, { vectors }: JsonText) => {
    if (vectorsAt !== null) readVectors(json, vectorsAt, { dimensionMax, vectors });
    checkExtent(json, body.length);
    return json;
  };
  return parseBody(input, read, { places, dimensionMax, cut });
}

/** Ignores values of the wrong kind, which the schema reports. */
function readVectors(
  json: JsonBody,
  place: VectorsAt,
  { dimensionMax, vectors }: { dimensionMax: number; vectors: VectorsCut | null },
): void {
  const issues: ValidationIssue[] = [];
  const read = (
    holder: Record<PropertyKey, unknown>,
    key: string | number,
    location: IssueLocation,
  ) => {
    const sent = holder[key];
    if (sent === undefined) return;
    const isCut = sent === CUT && vectors !== null;
    const vector = isCut ? vectors.next() : readVector(sent, dimensionMax);
    if (vector instanceof Float32Array) holder[key] = vector;
    else issues.push({ location, ...vector });
  };
  const value = json[place];
  if (place === 'vector' || place === 'values') {
    read(json, place, field(place));
  } else if (Array.isArray(value)) {
    for (let i = 0; i < value.length && issues.length < ISSUES_MAX; i++) {
      if (place === 'vectors') {
        read(value as unknown as Record<number, unknown>, i, field('vectors', i));
      } else if (isJsonObject(value[i])) {
        read(value[i], 'vector', rowField(i, 'vector'));
      }
    }
  }
  if (issues.length > 0) throw validationError(issues);
}

/** Throws `invalid_json`, or `invalid_request` for JSON that is not an object. */
function parseJsonObject({ bytes, vectors }: JsonText, bracketsUnchecked: number): JsonBody {
  const bracketsCut = vectors?.count ?? 0;
  const json = parseJson(bytes, 'The body', { bracketsUnchecked, bracketsCut });
  if (!isJsonObject(json)) {
    throw validationError([
      { location: field(), code: 'invalid_request', detail: 'The body must be an object.' },
    ]);
  }
  return json;
}

interface JsonOptions {
  /** The number of brackets up to which the depth is not checked. */
  readonly bracketsUnchecked?: number;
  /** The number of arrays that were cut out of the text, which count as brackets. */
  readonly bracketsCut?: number;
  /** The members in which numbers are exact; null for all, by default those of a body. */
  readonly exactMembers?: ExactMembers | null;
}

/** Throws `invalid_json`, with `what` as the name of the text. */
export function parseJson(
  body: Uint8Array,
  what: string,
  {
    bracketsUnchecked = BRACKETS_UNCHECKED,
    bracketsCut = 0,
    exactMembers = EXACT_MEMBERS,
  }: JsonOptions = {},
): unknown {
  const invalidJson = (why: string) => notJson(what, why);
  if (body.length === 0) throw invalidJson('it is empty; a JSON object is expected');
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  const encoding = isAscii(bytes) ? 'latin1' : 'utf8';
  if (encoding === 'utf8' && !isUtf8(bytes)) throw invalidJson('it is not UTF-8');
  // A text shorter than that has too few brackets to nest deeply.
  const isShort = bytes.length + bracketsCut <= bracketsUnchecked;
  if (!isShort && countBrackets(bytes, bracketsCut) > bracketsUnchecked) {
    checkDepth(bytes, invalidJson);
  }
  try {
    return parseExactJson(bytes.toString(encoding), exactMembers);
  } catch (error) {
    throw invalidJson(describeSyntaxError(error));
  }
}

/** Other numbers of a body are settings, scores and elements of vectors, for which float64 is enough. */
const EXACT_MEMBERS: ExactMembers = {
  within: new Set(['filter', 'filters', 'with_filter', 'metadata']),
  except: new Set(['vectors', 'sparse_vectors']),
};

/** Removes the excerpt of the body from V8's message. */
function describeSyntaxError(error: unknown): string {
  const message = error instanceof SyntaxError ? error.message : 'it nests too deeply';
  const unexpected = /^Unexpected token '(.{1,2})'/su.exec(message);
  if (unexpected !== null) return `unexpected ${JSON.stringify(unexpected[1])}`;
  return message.replace(' in JSON', '').replace(/^./, (first) => first.toLowerCase());
}

function notJson(what: string, why: string): SagittaError {
  const detail = `${what} is not valid JSON: ${why}.`;
  return validationError([{ location: field(), code: 'invalid_json', detail }]);
}

/** Throws `limit_exceeded` for too many brackets. */
function countBrackets(bytes: Buffer, countCut: number): number {
  let count = countCut;
  for (const bracket of [OPEN_BRACKET, OPEN_BRACE]) {
    for (let at = bytes.indexOf(bracket); at !== -1; at = bytes.indexOf(bracket, at + 1)) {
      if (++count > BRACKETS_MAX) throw limitExceeded('objects and arrays', BRACKETS_MAX);
    }
  }
  return count;
}

/** Throws `limit_exceeded` for too many members or values, which are read on the event loop. */
export function checkExtent(json: JsonBody, byteCount: number): void {
  // A small body cannot contain much.
  if (byteCount <= SMALL_BYTES_MAX) return;
  let count = 0;
  const waiting: unknown[] = [json];
  while (waiting.length > 0) {
    const container = waiting.pop();
    if (typeof container !== 'object' || container === null) continue;
    if (container instanceof Float32Array) continue;
    const values = Object.values(container);
    if (!Array.isArray(container) && values.length > MEMBERS_MAX) {
      throw limitExceeded('members in one object', MEMBERS_MAX);
    }
    count += values.length;
    if (count > VALUES_MAX) throw limitExceeded('values', VALUES_MAX);
    for (const value of values) if (typeof value === 'object') waiting.push(value);
  }
}

function limitExceeded(what: string, max: number): SagittaError {
  const detail = `The body has more than ${max} ${what}.`;
  return validationError([{ location: field(), code: 'limit_exceeded', detail, expected: max }]);
}

function checkDepth(bytes: Uint8Array, invalidJson: (why: string) => SagittaError): void {
  let depth = 0;
  let isInString = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (isInString) {
      if (byte === BACKSLASH) i++;
      else if (byte === QUOTE) isInString = false;
    } else if (byte === QUOTE) {
      isInString = true;
    } else if ((byte | 0x20) === OPEN_BRACE) {
      // Setting bit 5 turns brackets into braces, so that one comparison covers both.
      if (++depth > JSON_DEPTH_MAX) {
        throw invalidJson(`it nests deeper than ${JSON_DEPTH_MAX} levels at byte ${i}`);
      }
    } else if ((byte | 0x20) === OPEN_BRACE + 2) {
      depth--;
    }
  }
}
