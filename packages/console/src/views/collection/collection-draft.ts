// The input of forms about collections, and the request that it stands for. A form and its request are two forms of
// the same draft: `requestOf` writes the request, and `readRequest` reads one back, for example after it was edited as
// JSON. Members that the form has no field for are kept.

import type { CollectionInput, CollectionRecord, JsonObject, Metric } from '@sagitta/client';
import { VECTOR_MEMBERS } from '@sagitta/client';
import type { ElementType } from '../../../../../src/common/elements.js';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import {
  BIT_METRICS,
  type DeclaredType,
  type DeclaredTypes,
  type Json,
} from '../../../../../src/common/types.js';
import type { VectorKind } from '../../../../../src/common/vectors.js';

/** A label in a form; empty rows are ignored. */
export interface LabelRow {
  readonly name: string;
  readonly value: string;
}

/** The declared type of a metadata path; rows without a path are ignored. */
export interface TypeRow {
  readonly path: string;
  readonly type: DeclaredType;
}

/** What turns texts into vectors. */
export interface EmbedDraft {
  readonly kind: 'none' | 'builtin' | 'endpoint';
  readonly endpoint: string;
  readonly model: string;
  /** Other members of the kind. */
  readonly rest: JsonObject;
}

export interface TextDraft {
  readonly isOn: boolean;
  /** Metadata paths; empty ones are ignored. */
  readonly fields: readonly string[];
  /** Empty for words as they are. */
  readonly language: string;
  readonly rest: JsonObject;
}

/** A vector: the unnamed, a named or a sparse one. */
interface ShapeDraft {
  readonly dimension: string;
  readonly metric: Metric;
  readonly elementType: ElementType;
}

/** A named or sparse vector; rows without a name and dimension are ignored. */
export interface VectorDraft extends ShapeDraft {
  readonly name: string;
  /** Sparse vectors have no shape. */
  readonly kind: VectorKind;
  readonly rest: JsonObject;
}

/** The dimension is empty for a collection without the unnamed vector. */
export interface CollectionDraft extends ShapeDraft {
  readonly id: string;
  readonly embed: EmbedDraft;
  readonly text: TextDraft;
  readonly vectors: readonly VectorDraft[];
  readonly types: readonly TypeRow[];
  /** Seconds. */
  readonly ttl: string;
  readonly description: string;
  readonly labels: readonly LabelRow[];
  /** The nodes of a cluster that hold the collection; empty for all. */
  readonly nodes: string;
  /** The request while it is edited as JSON; null if the fields were edited last. */
  readonly json: string | null;
}

/** Error messages by field. */
export type DraftErrors = Partial<Record<keyof CollectionDraft, string>>;

export type ParsedDraft =
  | { readonly kind: 'valid'; readonly input: CollectionInput }
  | { readonly kind: 'invalid'; readonly errors: DraftErrors };

const NEW_SHAPE: ShapeDraft = { dimension: '', metric: 'cosine', elementType: 'float32' };
const NO_EMBEDDING: EmbedDraft = { kind: 'none', endpoint: '', model: '', rest: {} };

export const EMPTY_DRAFT: CollectionDraft = {
  ...NEW_SHAPE,
  id: '',
  embed: NO_EMBEDDING,
  text: { isOn: false, fields: [''], language: '', rest: {} },
  vectors: [],
  types: [],
  ttl: '',
  description: '',
  labels: [],
  nodes: '',
  json: null,
};

export const EMPTY_VECTOR: VectorDraft = { ...NEW_SHAPE, name: '', kind: 'dense', rest: {} };

const MEMBERS = [
  'id',
  'dimension',
  'metric',
  'element_type',
  'embed',
  'text',
  'vectors',
  'sparse_vectors',
  'schema',
  'ttl_seconds',
  'description',
  'labels',
  'replication_factor',
];

/** Checks what the browser can check; the server checks the rest. */
export function parseDraft(draft: CollectionDraft, dimensionMax: number): ParsedDraft {
  const errors = findErrors(draft, dimensionMax);
  return Object.keys(errors).length > 0
    ? { kind: 'invalid', errors }
    : { kind: 'valid', input: requestOf(draft) as CollectionInput };
}

function findErrors(draft: CollectionDraft, dimensionMax: number): DraftErrors {
  const { json, text } = draft;
  return onlyErrors({
    ...findSettingsErrors(draft),
    id: draft.id.trim() === '' ? 'Expected a name.' : undefined,
    dimension: findShapeError(draft, dimensionMax),
    text: text.isOn && fieldsOf(text).length === 0 ? 'Expected a metadata path.' : undefined,
    vectors: findVectorsError(draft.vectors, dimensionMax),
    json: json === null ? undefined : errorOf(readRequest(json)),
  });
}

function onlyErrors(
  found: Partial<Record<keyof CollectionDraft, string | undefined>>,
): DraftErrors {
  return Object.fromEntries(Object.entries(found).filter(([, error]) => error !== undefined));
}

/** The settings that can be changed after a collection was created. */
export type SettingsDraft = Pick<
  CollectionDraft,
  'description' | 'labels' | 'ttl' | 'types' | 'embed' | 'nodes'
>;

export function settingsOf(record: CollectionRecord): SettingsDraft {
  return {
    description: record.description ?? '',
    labels: rowsOfLabels(record.labels),
    ttl: textOrEmpty(record.ttl_seconds),
    types: rowsOfTypes(record.schema ?? {}),
    embed: readEmbedding(record as object),
    nodes: textOrEmpty(record.replication_factor),
  };
}

export function findSettingsErrors(draft: SettingsDraft): DraftErrors {
  return onlyErrors({
    embed: findEmbedError(draft.embed),
    types: findRepeated(
      'path',
      draft.types.map(({ path }) => path.trim()),
    ),
    ttl: findNumberError(draft.ttl, Number.MAX_SAFE_INTEGER),
    labels: findLabelError(draft.labels),
    nodes: findNumberError(draft.nodes, Number.MAX_SAFE_INTEGER),
  });
}

/** The members of the settings that differ, as a change of the collection. */
export function changeOf(before: SettingsDraft, after: SettingsDraft): JsonObject {
  const from = changeTo(before);
  return Object.fromEntries(
    Object.entries(changeTo(after)).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(from[name]),
    ),
  );
}

function changeTo({ description, labels, ttl, types, embed, nodes }: SettingsDraft): JsonObject {
  return {
    description: description === '' ? null : description,
    labels: labelsOf(labels),
    ttl_seconds: ttl.trim() === '' ? null : numberOr(ttl),
    schema: typesOf(types),
    ...embeddingOf(embed, true),
    replication_factor: nodes.trim() === '' ? null : numberOr(nodes),
  };
}

/** The request as a JSON object, also of a draft that is not valid. */
export function requestOf(draft: CollectionDraft): JsonObject {
  const { id, description, labels, nodes, ttl, types, vectors } = draft;
  return {
    ...(id.trim() !== '' && { id: id.trim() }),
    // The built-in model determines the vector.
    ...(draft.embed.kind !== 'builtin' && draft.dimension.trim() !== '' && shapeOf(draft)),
    ...embeddingOf(draft.embed),
    ...textOf(draft.text),
    ...vectorsOf(vectors),
    ...(typesOf(types) !== null && { schema: typesOf(types) }),
    ...(ttl.trim() !== '' && { ttl_seconds: numberOr(ttl) }),
    ...(description !== '' && { description }),
    ...(labels.some(({ name }) => name !== '') && { labels: labelsOf(labels) }),
    ...(nodes.trim() !== '' && { replication_factor: numberOr(nodes) }),
  };
}

/** The draft that stands for a request; a string is an error message. */
export function readRequest(text: string): CollectionDraft | string {
  const request = parseJsonObject(text);
  if (typeof request === 'string') return request;
  const unknown = Object.keys(request).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) {
    return `Found the member ${unknown}, expected some of ${MEMBERS.join(', ')}.`;
  }
  const misplaced = ['vectors', 'sparse_vectors', 'text', 'schema', 'labels'].find(
    (name) => request[name] != null && !isJsonObject(request[name]),
  );
  if (misplaced !== undefined) return `Expected an object as ${misplaced}.`;
  const { text: settings } = request;
  return {
    ...readShape(request),
    id: textOrEmpty(request.id),
    embed: readEmbedding(request),
    text: isJsonObject(settings) ? readText(settings) : EMPTY_DRAFT.text,
    vectors: [
      ...entriesOf(request.vectors).map(([name, value]) => readVector(name, value)),
      ...entriesOf(request.sparse_vectors).map(([name, value]) => ({
        ...EMPTY_VECTOR,
        name,
        kind: 'sparse' as const,
        rest: isJsonObject(value) ? value : {},
      })),
    ],
    types: rowsOfTypes((request.schema ?? {}) as DeclaredTypes),
    ttl: textOrEmpty(request.ttl_seconds),
    description: textOrEmpty(request.description),
    labels: entriesOf(request.labels).map(([name, value]) => ({ name, value: textOrEmpty(value) })),
    nodes: textOrEmpty(request.replication_factor),
    json: null,
  };
}

/** The one place that writes the member of the model; without a model, it is null in changes and absent otherwise. */
function embeddingOf({ kind, endpoint, model, rest }: EmbedDraft, isChange = false): JsonObject {
  if (kind === 'none') return isChange ? { embed: null } : {};
  if (kind === 'builtin') {
    return { embed: Object.keys(rest).length === 0 ? 'builtin' : { endpoint: 'builtin', ...rest } };
  }
  return { embed: { endpoint: endpoint.trim(), model: model.trim(), ...rest } };
}

/** Reads the member that `embeddingOf` writes. Records also name the version of the built-in model. */
function readEmbedding({ embed = null }: { readonly embed?: Json }): EmbedDraft {
  if (embed === 'builtin') return { ...NO_EMBEDDING, kind: 'builtin' };
  if (!isJsonObject(embed)) return NO_EMBEDDING;
  const { endpoint, ...others } = embed;
  if (endpoint === 'builtin') return { ...NO_EMBEDDING, kind: 'builtin', rest: others };
  const { model, ...rest } = others;
  return { kind: 'endpoint', endpoint: textOrEmpty(endpoint), model: textOrEmpty(model), rest };
}

function findEmbedError({ kind, endpoint, model }: EmbedDraft): string | undefined {
  if (kind !== 'endpoint') return undefined;
  return endpoint.trim() === '' || model.trim() === ''
    ? 'Expected the name of an endpoint and of a model.'
    : undefined;
}

/** Undefined if there is no unnamed vector and something else to search. */
function findShapeError(draft: CollectionDraft, dimensionMax: number): string | undefined {
  const { embed, text, vectors } = draft;
  if (embed.kind === 'builtin') return undefined;
  const isNeeded = !text.isOn && vectors.every(({ name }) => name.trim() === '');
  if (draft.dimension.trim() !== '' || !isNeeded) {
    return findNumberError(draft.dimension, dimensionMax);
  }
  return 'Expected a number, or something else to search.';
}

function shapeOf({ dimension, metric, elementType }: ShapeDraft): JsonObject {
  return {
    dimension: numberOr(dimension),
    metric,
    ...(elementType !== 'float32' && { element_type: elementType }),
  };
}

function readShape({ dimension, metric, element_type: elementType }: JsonObject): ShapeDraft {
  const isOfBits = elementType === 'bit';
  return {
    dimension: textOrEmpty(dimension),
    metric: (metric ?? (isOfBits ? 'hamming' : 'cosine')) as Metric,
    elementType: (elementType ?? 'float32') as ElementType,
  };
}

/** The parts of a shape after its element type was chosen: bits have metrics of their own. */
export function withElementType(
  elementType: ElementType,
  metric: Metric,
): Pick<ShapeDraft, 'elementType' | 'metric'> {
  const isOfBits = elementType === 'bit';
  if (isOfBits === BIT_METRICS.has(metric)) return { elementType, metric };
  return { elementType, metric: isOfBits ? 'hamming' : 'cosine' };
}

function fieldsOf({ fields }: TextDraft): readonly string[] {
  return fields.map((field) => field.trim()).filter((field) => field !== '');
}

function textOf(text: TextDraft): JsonObject {
  if (!text.isOn) return {};
  const { language, rest } = text;
  return { text: { fields: [...fieldsOf(text)], ...(language !== '' && { language }), ...rest } };
}

function readText({ fields, language, ...rest }: JsonObject): TextDraft {
  const paths = Array.isArray(fields) ? fields.map(textOrEmpty) : [''];
  return { isOn: true, fields: paths, language: textOrEmpty(language), rest };
}

function vectorsOf(rows: readonly VectorDraft[]): JsonObject {
  const members: Record<string, JsonObject> = {};
  for (const row of rows) {
    const name = row.name.trim();
    if (name === '') continue;
    const multi = row.kind === 'multi' && { multi: true };
    const settings = row.kind === 'sparse' ? row.rest : { ...shapeOf(row), ...multi, ...row.rest };
    const member = VECTOR_MEMBERS[row.kind];
    members[member] = { ...members[member], [name]: settings };
  }
  return members;
}

function readVector(name: string, value: Json): VectorDraft {
  if (!isJsonObject(value)) return { ...EMPTY_VECTOR, name };
  const { dimension, metric, element_type, multi, ...rest } = value;
  const shape = readShape({ dimension, metric, element_type } as JsonObject);
  return { ...shape, name, kind: multi === true ? 'multi' : 'dense', rest };
}

function findVectorsError(rows: readonly VectorDraft[], dimensionMax: number): string | undefined {
  for (const { name, kind, dimension } of rows) {
    const hasDimension = dimension.trim() !== '';
    if (name.trim() === '') {
      if (hasDimension) return `The vector with the dimension ${dimension} has no name.`;
      continue;
    }
    if (kind === 'sparse') continue;
    if (!hasDimension) return `The vector ${name} has no dimension.`;
    const error = findNumberError(dimension, dimensionMax);
    if (error !== undefined) return `${name}: ${error}`;
  }
  return findRepeated(
    'vector',
    rows.map(({ name }) => name.trim()),
  );
}

/** The change that adds a vector to a collection; null while the draft is incomplete. The server checks the rest. */
export function parseVectorDraft(
  draft: VectorDraft,
): Pick<CollectionInput, 'vectors' | 'sparse_vectors'> | null {
  const isNamed = draft.name.trim() !== '';
  const error = findVectorsError([draft], Number.MAX_SAFE_INTEGER);
  return isNamed && error === undefined ? vectorsOf([draft]) : null;
}

/** Null if there are none. */
function typesOf(rows: readonly TypeRow[]): Record<string, DeclaredType> | null {
  const named = rows.filter(({ path }) => path.trim() !== '');
  if (named.length === 0) return null;
  return Object.fromEntries(named.map(({ path, type }) => [path.trim(), type]));
}

function rowsOfTypes(types: DeclaredTypes): readonly TypeRow[] {
  return Object.entries(types).map(([path, type]) => ({ path, type }));
}

/** Undefined if the field is empty or contains a whole number in the range. */
function findNumberError(text: string, max: number): string | undefined {
  if (text.trim() === '') return undefined;
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= max) return undefined;
  const range = max === Number.MAX_SAFE_INTEGER ? 'from 1' : `from 1 to ${max}`;
  return `Found ${text}, expected a whole number ${range}.`;
}

function findRepeated(what: string, names: readonly string[]): string | undefined {
  const repeated = names.find((name, at) => name !== '' && names.indexOf(name) !== at);
  return repeated === undefined ? undefined : `The ${what} ${repeated} appears twice.`;
}

function findLabelError(rows: readonly LabelRow[]): string | undefined {
  const unnamed = rows.find(({ name, value }) => name === '' && value !== '');
  if (unnamed !== undefined) return `The label with the value ${unnamed.value} has no name.`;
  return findRepeated(
    'label',
    rows.map(({ name }) => name),
  );
}

function labelsOf(rows: readonly LabelRow[]): JsonObject {
  const named = rows.filter(({ name }) => name !== '');
  return Object.fromEntries(named.map(({ name, value }) => [name, value]));
}

function rowsOfLabels(labels: Readonly<Record<string, string>>): readonly LabelRow[] {
  return Object.entries(labels).map(([name, value]) => ({ name, value }));
}

function errorOf(parsed: unknown): string | undefined {
  return typeof parsed === 'string' ? parsed : undefined;
}

/** A string is an error message. */
function parseJsonObject(text: string): JsonObject | string {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : 'Expected a JSON object.';
  } catch (error) {
    return `Expected JSON: ${error instanceof Error ? error.message : error}`;
  }
}

function entriesOf(value: Json | undefined): readonly (readonly [string, Json])[] {
  return isJsonObject(value) ? Object.entries(value) : [];
}

/** A text that is no number stays a text, so that it can be read back. */
function numberOr(text: string): number | string {
  const number = Number(text);
  return Number.isFinite(number) ? number : text;
}

function textOrEmpty(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
