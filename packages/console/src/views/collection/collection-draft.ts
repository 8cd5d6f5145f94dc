// The input of forms about collections: checks it and turns it into requests.

import type { CollectionInput, JsonObject, Metric } from '@sagitta/client';
import { VECTOR_MEMBERS } from '@sagitta/client';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import type { VectorKind } from '../../../../../src/common/vectors.js';

/** A label in a form; empty rows are ignored. */
export interface LabelRow {
  readonly name: string;
  readonly value: string;
}

export interface CollectionDraft {
  readonly id: string;
  /** Empty for a collection without the unnamed vector. */
  readonly dimension: string;
  readonly metric: Metric;
  readonly description: string;
  readonly labels: readonly LabelRow[];
  /** A JSON object with other members of the request. */
  readonly advanced: string;
}

/** Error messages by field. */
export type DraftErrors = Partial<Record<keyof CollectionDraft, string>>;

export type ParsedDraft =
  | { readonly kind: 'valid'; readonly input: CollectionInput }
  | { readonly kind: 'invalid'; readonly errors: DraftErrors };

export const EMPTY_DRAFT: CollectionDraft = {
  id: '',
  dimension: '',
  metric: 'cosine',
  description: '',
  labels: [],
  advanced: '',
};

/** Members that have no field of their own in the form. */
export const ADVANCED_MEMBERS = Object.keys({
  vectors: true,
  sparse_vectors: true,
  text: true,
  element_type: true,
  ttl_seconds: true,
  schema: true,
  embed: true,
  replication_factor: true,
} satisfies Record<Exclude<keyof CollectionInput, keyof CollectionDraft>, true>);

/** Checks what the browser can check; the server checks the rest. */
export function parseDraft(draft: CollectionDraft, dimensionMax: number): ParsedDraft {
  const dimension = parseDimension(draft.dimension, dimensionMax);
  const labels = parseLabels(draft.labels);
  const advanced = parseAdvanced(draft.advanced);
  const errors = {
    ...(draft.id.trim() === '' && { id: 'Expected a name.' }),
    ...(typeof dimension === 'string' && { dimension }),
    ...(typeof labels === 'string' && { labels }),
    ...(typeof advanced === 'string' && { advanced }),
  };
  if (typeof dimension === 'string' || typeof labels === 'string' || typeof advanced === 'string') {
    return { kind: 'invalid', errors };
  }
  if (Object.keys(errors).length > 0) return { kind: 'invalid', errors };
  const input: CollectionInput = {
    ...advanced,
    id: draft.id.trim(),
    ...(dimension !== undefined && { dimension, metric: draft.metric }),
    ...(draft.description !== '' && { description: draft.description }),
    ...(Object.keys(labels).length > 0 && { labels }),
  };
  return { kind: 'valid', input };
}

/** A named or sparse vector to add. */
export interface VectorDraft {
  readonly name: string;
  readonly kind: VectorKind;
  /** Like the metric, ignored for sparse vectors. */
  readonly dimension: string;
  readonly metric: Metric;
}

export const EMPTY_VECTOR: VectorDraft = {
  name: '',
  kind: 'dense',
  dimension: '',
  metric: 'cosine',
};

/** The change to send; null while the draft is incomplete. The server checks the rest. */
export function parseVectorDraft({
  name,
  kind,
  dimension,
  metric,
}: VectorDraft): Pick<CollectionInput, 'vectors' | 'sparse_vectors'> | null {
  const typed = name.trim();
  if (typed === '') return null;
  const member = VECTOR_MEMBERS[kind];
  if (kind === 'sparse') return { [member]: { [typed]: {} } };
  const length = parseDimension(dimension, Number.MAX_SAFE_INTEGER);
  if (typeof length !== 'number') return null;
  const multi = kind === 'multi' && { multi: true };
  return { [member]: { [typed]: { dimension: length, metric, ...multi } } };
}

/** Undefined if the field is empty; a string is an error message. */
function parseDimension(text: string, max: number): number | undefined | string {
  if (text.trim() === '') return undefined;
  const dimension = Number(text);
  return Number.isInteger(dimension) && dimension >= 1 && dimension <= max
    ? dimension
    : `Found ${text}, expected a whole number from 1 to ${max}.`;
}

/** The labels as an object; a string is an error message. */
export function parseLabels(rows: readonly LabelRow[]): Record<string, string> | string {
  const labels: Record<string, string> = {};
  for (const { name, value } of rows) {
    if (name === '' && value === '') continue;
    if (name === '') return `The label with the value ${value} has no name.`;
    if (Object.hasOwn(labels, name)) return `The label ${name} appears twice.`;
    labels[name] = value;
  }
  return labels;
}

export function rowsOfLabels(labels: Readonly<Record<string, string>>): readonly LabelRow[] {
  return Object.entries(labels).map(([name, value]) => ({ name, value }));
}

function parseAdvanced(text: string): Partial<CollectionInput> | string {
  if (text.trim() === '') return {};
  const object = parseJsonObject(text);
  if (typeof object === 'string') return object;
  const unknown = Object.keys(object).find((name) => !ADVANCED_MEMBERS.includes(name));
  return unknown === undefined
    ? (object as Partial<CollectionInput>)
    : `Found the member ${unknown}, expected some of ${ADVANCED_MEMBERS.join(', ')}.`;
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

/** Seconds, or null for never; a string is an error message. */
export function parseTtl(text: string): number | null | string {
  if (text.trim() === '') return null;
  const seconds = Number(text);
  return Number.isInteger(seconds) && seconds >= 1
    ? seconds
    : `Found ${text}, expected a whole number of seconds.`;
}
