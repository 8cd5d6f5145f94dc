// The vectors that each record of a collection may have: unnamed, named, sparse.

import { DataTable } from '../../ui/data-table.js';
import { formatCount } from '../../ui/format.js';
import type { CollectionViewProps } from '../collection-view-props.js';

interface VectorRow {
  readonly name: string;
  readonly kind: string;
  readonly dimension: number | undefined;
  readonly metric: string;
}

const COLUMNS = [
  { label: 'Vector', cell: ({ name }: VectorRow) => name },
  { label: 'Kind', cell: ({ kind }: VectorRow) => kind },
  {
    label: 'Dimension',
    kind: 'number' as const,
    cell: ({ dimension }: VectorRow) => (dimension === undefined ? '–' : formatCount(dimension)),
  },
  { label: 'Metric', cell: ({ metric }: VectorRow) => metric },
];

/** Shown only when there is more than the unnamed vector, which the settings have. */
export function VectorsPanel({ collection }: CollectionViewProps) {
  const { dimension, metric, vectors = {}, sparse_vectors: sparse = {} } = collection;
  const named = Object.entries(vectors).map(([name, shape]) => ({
    name,
    kind: shape.multi === true ? 'list of vectors' : 'one vector',
    dimension: shape.dimension,
    metric: shape.multi === true ? `MaxSim of ${shape.metric}` : shape.metric,
  }));
  const further: VectorRow[] = [
    ...named,
    ...Object.keys(sparse).map((name) => ({
      name,
      kind: 'sparse',
      dimension: undefined,
      metric: 'dot',
    })),
  ];
  if (further.length === 0) return null;
  const unnamed: VectorRow[] =
    dimension === undefined
      ? []
      : [{ name: '(unnamed)', kind: 'one vector', dimension, metric: metric ?? '' }];
  return (
    <DataTable
      label="Vectors of each record"
      columns={COLUMNS}
      rows={[...unnamed, ...further]}
      keyOf={({ name }) => name}
    />
  );
}
