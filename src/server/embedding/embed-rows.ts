// Replaces the texts in rows and queries by their vectors.

import { createBitmap, setBit } from '../../common/bitmap.js';
import {
  type ErrorCode,
  type FieldPath,
  field,
  type IssueLocation,
  SagittaError,
  validationError,
} from '../../common/errors.js';
import { sharedFloat32 } from '../../common/shared-array.js';
import {
  type DenseColumn,
  type DenseSpec,
  type Named,
  specOf,
  UNNAMED,
} from '../../common/vectors.js';
import type { QueryRequest } from '../../database/api/query-api.js';
import type { CollectionHandle } from '../../database/collection-handle.js';
import { mapRankings } from '../../database/rankings/requests.js';
import { conformVector } from '../bodies/dense-vectors.js';
import type { ParsedRows } from '../bodies/parsed-rows.js';
import { TextError } from './builtin-model.js';
import type { Embedder } from './embedder.js';

interface EmbedContext {
  readonly embedder: Embedder;
  readonly collection: CollectionHandle;
  readonly signal: AbortSignal;
}

/** The rows with vectors in place of texts. Throws what `embedTexts` throws. */
export async function embedRows<Rows extends ParsedRows>(
  rows: Rows,
  context: EmbedContext,
  locate: (row: number) => IssueLocation,
): Promise<Rows> {
  const { texts, batch } = rows;
  if (texts === undefined) return rows;
  const found = await embedTexts(
    texts.map(({ text, row }) => ({ text, location: locate(row) })),
    { ...context, isStored: true },
  );
  const dimension = found.length / texts.length;
  const unnamed = batch.vectors.find(({ name }) => name === UNNAMED);
  const column =
    unnamed?.kind === 'dense'
      ? unnamed
      : emptyColumn(batch.count, context.collection.vectors[UNNAMED] as DenseSpec);
  for (const [i, { row }] of texts.entries()) {
    column.values.set(found.subarray(i * dimension, (i + 1) * dimension), row * dimension);
    if (column.presence !== null) setBit(column.presence, row);
  }
  const others = batch.vectors.filter(({ name }) => name !== UNNAMED);
  return { ...rows, batch: { ...batch, vectors: [column, ...others] }, texts: undefined };
}

/** A column of the unnamed vector without values. */
function emptyColumn(rowCount: number, spec: DenseSpec): Named<DenseColumn> {
  const values = sharedFloat32(rowCount * spec.dimension);
  return { ...specOf(spec), name: UNNAMED, values, presence: createBitmap(rowCount) };
}

/** The vector of a text. Throws what `embedTexts` throws. */
export function embedText(text: string, context: EmbedContext): Promise<Float32Array> {
  return embedTexts([{ text, location: EMBED_FIELD }], { ...context, isStored: true });
}

/** The queries with vectors in place of texts, in all their rankings. Throws what `embedTexts` throws. */
export async function embedQueries(
  queries: readonly QueryRequest[],
  context: EmbedContext,
  locate: (index: number, path: FieldPath) => IssueLocation,
): Promise<readonly QueryRequest[]> {
  const texts: { text: string; location: IssueLocation }[] = [];
  for (const [i, query] of queries.entries()) {
    mapRankings(query, (ranking, path) => {
      const { embed } = ranking;
      if (embed !== undefined) texts.push({ text: embed, location: locate(i, [...path, 'embed']) });
      return ranking;
    });
  }
  if (texts.length === 0) return queries;
  const vectors = await embedTexts(texts, context);
  const dimension = vectors.length / texts.length;
  let next = 0;
  return queries.map((query) =>
    mapRankings(query, (ranking) => {
      if (ranking.embed === undefined) return ranking;
      const start = next++ * dimension;
      return { ...ranking, embed: undefined, vector: vectors.subarray(start, start + dimension) };
    }),
  );
}

/**
 * The vectors of texts, row-major; `isStored` rounds the elements to the type that the collection stores. Throws
 * `invalid_vector` for a zero vector under cosine, and what `Embedder.embed` throws; errors about the request are
 * issues of the first text.
 */
async function embedTexts(
  texts: readonly { readonly text: string; readonly location: IssueLocation }[],
  { embedder, collection, signal, isStored = false }: EmbedContext & { isStored?: boolean },
): Promise<Float32Array> {
  const { embedding: source } = collection;
  const shape = collection.vectors[UNNAMED];
  // A collection without the unnamed vector cannot have a model.
  if (source === null || shape?.kind !== 'dense') {
    const detail =
      'The collection has no model for texts. Set its member `embed`, or send vectors.';
    throw notConfigured(texts[0]!.location, detail);
  }
  const sent = texts.map(({ text }) => text);
  const { dimension } = shape;
  const vectors = await embedder
    .embed(sent, { source, dimension }, signal)
    .catch((error: unknown) => {
      if (error instanceof TextError) {
        const { index, detail } = error.issue;
        const { location } = texts[index]!;
        throw validationError([{ location, code: 'invalid_request', detail }]);
      }
      const isAboutText =
        error instanceof SagittaError && error.code === 'embedding_not_configured';
      throw isAboutText ? notConfigured(texts[0]!.location, error.message) : error;
    });
  for (const [i, { location }] of texts.entries()) {
    const element = isStored ? shape.element : undefined;
    const violation = conformVector(vectors, i * dimension, { ...shape, element });
    if (violation !== null) throw validationError([{ location, ...violation }]);
  }
  return vectors;
}

function notConfigured(location: IssueLocation, detail: string): SagittaError {
  return validationError([{ location, code: 'embedding_not_configured', detail }]);
}

export const EMBEDDING_ERRORS = [
  'embedding_not_configured',
  'embedding_failed',
  'embedding_unavailable',
] as const satisfies readonly ErrorCode[];

/** The location of the text in a body that is a single row or query. */
export const EMBED_FIELD = field('embed');
