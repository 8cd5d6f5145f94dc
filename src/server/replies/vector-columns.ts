// The vectors of rows as columns of a table, by their kinds: `values` for the unnamed one, `vectors.<name>` and
// `sparse_vectors.<name>.…` for the others.

import { ELEMENTS } from '../../common/elements.js';
import {
  type ColumnOf,
  type ColumnSpec,
  type Named,
  UNNAMED,
  type VectorColumn,
  type VectorKind,
} from '../../common/vectors.js';
import { indicesName, valuesName } from '../../formats/arrow/sparse-fields.js';
import type { TableColumn } from './table.js';

export type VectorField = Named<ColumnSpec>;

type Spec<Kind extends VectorKind> = Named<Extract<ColumnSpec, { readonly kind: Kind }>>;

/** The columns of the vectors of a name, in the order in which tables have the kinds. */
const COLUMNS: {
  readonly [Kind in VectorKind]: (spec: Spec<Kind>) => TableColumn<ColumnOf<Spec<Kind>>>[];
} = {
  dense({ name, dimension, element: stored = 'float32' }) {
    const element = ELEMENTS[stored].sent;
    return [
      {
        ...namesOf(name),
        type: { vectorOf: dimension, element },
        of: ({ values, presence }) => ({ vectors: values, presence, element }),
      },
    ];
  },
  multi: ({ name, dimension }) => [
    { ...namesOf(name), type: { vectorsOf: dimension }, of: (multi) => ({ multi }) },
  ],
  sparse: ({ name }) => [
    {
      name: indicesName(name),
      path: ['sparse_vectors', name, 'indices'],
      type: { listOf: 'uint32' },
      of: ({ starts, indices }) => ({ starts, elements: indices }),
    },
    {
      name: valuesName(name),
      path: ['sparse_vectors', name, 'values'],
      type: { listOf: 'float32' },
      of: ({ starts, values }) => ({ starts, elements: values }),
    },
  ],
};

const KINDS = Object.keys(COLUMNS);

/** Every row has the unnamed vector of its collection, and any of the others. */
function namesOf(name: string) {
  const path = name === UNNAMED ? ['values'] : ['vectors', name];
  return { name: path.join('.'), path, isNullable: name !== UNNAMED };
}

/** The columns of chunks that have their vectors in the order of the fields. */
export function vectorColumns(
  fields: readonly VectorField[],
): TableColumn<{ readonly vectors: readonly VectorColumn[] }>[] {
  const rankOf = ({ name, kind }: VectorField) => (name === UNNAMED ? -1 : KINDS.indexOf(kind));
  const ordered = [...fields.entries()].sort(([, a], [, b]) => rankOf(a) - rankOf(b));
  return ordered.flatMap(([i, field]) => {
    const columnsOf = COLUMNS[field.kind] as (field: VectorField) => TableColumn<VectorColumn>[];
    return columnsOf(field).map((column) => ({
      ...column,
      of: ({ vectors }) => column.of(vectors[i]!),
    }));
  });
}
