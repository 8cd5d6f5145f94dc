// The vectors of rows as columns of a table, by their kinds: `values` for the unnamed one, `vectors.<name>` and
// `sparse_vectors.<name>.…` for the others.

import { ELEMENTS } from '../../common/elements.js';
import { type ColumnSpec, type Named, UNNAMED, type VectorColumn } from '../../common/vectors.js';
import {
  ARROW_KINDS,
  columnsOfVectors,
  fieldsOfVectors,
} from '../../formats/arrow/vector-kinds.js';
import type { TableColumn } from './table.js';

export type VectorField = Named<ColumnSpec>;

/** The order in which tables have the kinds. */
const KINDS = Object.keys(ARROW_KINDS);

/** Vectors as they are sent. */
function toSent<Vectors extends ColumnSpec>(vectors: Vectors): Vectors {
  if (vectors.kind !== 'dense') return vectors;
  return { ...vectors, element: ELEMENTS[vectors.element ?? 'float32'].sent };
}

/** The columns of chunks that have their vectors in the order of the fields. */
export function vectorColumns(
  fields: readonly VectorField[],
): TableColumn<{ readonly vectors: readonly VectorColumn[] }>[] {
  const rankOf = ({ name, kind }: VectorField) => (name === UNNAMED ? -1 : KINDS.indexOf(kind));
  const ordered = [...fields.entries()].sort(([, a], [, b]) => rankOf(a) - rankOf(b));
  return ordered.flatMap(([i, field]) =>
    fieldsOfVectors(toSent(field)).map((column, part) => ({
      ...column,
      of: ({ vectors }) => columnsOfVectors(toSent(vectors[i]!))[part]!,
    })),
  );
}
