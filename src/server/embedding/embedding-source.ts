// What turns the texts of a collection into vectors, as requests set it.

import { field, validationError } from '../../common/errors.js';
import type { EmbeddingSource } from '../../common/types.js';
import { BUILTIN } from '../../platform/config.js';
import type { Embedder } from './embedder.js';
import { SENTENCE_DIMENSION } from './sentence-encoder.js';

/**
 * The model of a setting, with the version of the built-in one. Throws `embedding_not_configured` if it is not
 * installed, and `invalid_request` for another version than the installed one.
 */
export function sourceOf<Absent extends null | undefined>(
  embed: typeof BUILTIN | EmbeddingSource | Absent,
  { builtin }: Embedder,
): EmbeddingSource | Absent {
  if (embed === null || embed === undefined) return embed;
  if (embed !== BUILTIN && embed.endpoint !== BUILTIN) return embed;
  const installed = builtin.requireInstalled();
  if (embed !== BUILTIN && embed.model !== installed) {
    const detail = `Expected "${installed}", the installed version of the built-in model; found "${embed.model}".`;
    const location = field('embed', 'model');
    throw validationError([{ location, code: 'invalid_request', detail }]);
  }
  return { endpoint: BUILTIN, model: installed, sendsDimension: false };
}

/** The dimension of unnamed vectors. Throws `dimension_mismatch` if the built-in model has another one. */
export function dimensionOf(
  dimension: number | undefined,
  source: EmbeddingSource | null | undefined,
): number | undefined {
  if (source?.endpoint !== BUILTIN) return dimension;
  if (dimension === undefined || dimension === SENTENCE_DIMENSION) return SENTENCE_DIMENSION;
  const detail = `Expected ${SENTENCE_DIMENSION}, the dimension of the built-in model; found ${dimension}.`;
  throw validationError([{ location: field('dimension'), code: 'dimension_mismatch', detail }]);
}
