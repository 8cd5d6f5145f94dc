// The vectors of rows as columns of a table: `values` for the unnamed one, `vectors.<name>` and
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

/** The order of the kinds in tables. */
const KINDS = Object.keys(ARROW_KINDS);

/** Widens the elements to the type that is sent. */
function toSent<Vectors extends ColumnSpec>(vectors: Vectors): Vectors {
  if (vectors.kind !== 'dense') return vectors;
  return { ...vectors, element: ELEMENTS[vectors.element ?? 'float32'].sent };
}

/** Columns for chunks whose vectors are in the order of the fields. */
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
