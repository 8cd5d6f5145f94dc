// The table of the kinds of vectors for input. A new kind needs an entry here and in `formats/arrow/vector-kinds.ts`.

import type { FieldPath } from '../../common/errors.js';
import type { FieldShape } from '../../common/types.js';
import { UNNAMED, type VectorKind } from '../../common/vectors.js';
import { denseRules } from './dense-vectors.js';
import { multiRules } from './multi-vectors.js';
import { sparseRules } from './sparse-vectors.js';
import type { VectorRules } from './vector-rules.js';

export const VECTOR_KINDS: Readonly<Record<VectorKind, VectorRules>> = {
  dense: denseRules,
  multi: multiRules,
  sparse: sparseRules,
};

/** The path of a vector within a row. */
export function pathOf(name: string, { kind }: FieldShape): FieldPath {
  return name === UNNAMED ? ['values'] : [VECTOR_KINDS[kind].member, name];
}
