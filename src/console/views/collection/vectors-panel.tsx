// The vectors that each record of a collection may have: unnamed, named, sparse.

import { useState } from 'react';
import { Button } from '../../ui/button.js';
import { DataTable } from '../../ui/data-table.js';
import { formatCount } from '../../ui/format.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { DropVector } from './change-vectors.js';

interface VectorRow {
  readonly name: string;
  readonly kind: string;
  readonly dimension: number | undefined;
  readonly metric: string;
  readonly mayDrop: boolean;
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
  const [dropped, setDropped] = useState<string>();
  const { dimension, metric, vectors = {}, sparse_vectors: sparse = {} } = collection;
  const named = Object.entries(vectors).map(([name, shape]) => ({
    name,
    kind: shape.multi === true ? 'list of vectors' : 'one vector',
    dimension: shape.dimension,
    metric: shape.multi === true ? `MaxSim of ${shape.metric}` : shape.metric,
    mayDrop: true,
  }));
  const further: VectorRow[] = [
    ...named,
    ...Object.keys(sparse).map((name) => ({
      name,
      kind: 'sparse',
      dimension: undefined,
      metric: 'dot',
      mayDrop: true,
    })),
  ];
  if (further.length === 0) return null;
  const unnamed: VectorRow[] =
    dimension === undefined
      ? []
      : [
          {
            name: '(unnamed)',
            kind: 'one vector',
            dimension,
            metric: metric ?? '',
            mayDrop: false,
          },
        ];
  const drop = {
    label: 'Actions',
    isLabelHidden: true,
    kind: 'actions' as const,
    cell: ({ name, mayDrop }: VectorRow) =>
      mayDrop && (
        <Button aria-label={`Drop ${name}`} onClick={() => setDropped(name)}>
          Drop
        </Button>
      ),
  };
  return (
    <>
      <DataTable
        label="Vectors of each record"
        columns={[...COLUMNS, drop]}
        rows={[...unnamed, ...further]}
        keyOf={({ name }) => name}
      />
      <DropVector
        collection={collection}
        name={dropped ?? ''}
        isOpen={dropped !== undefined}
        onClose={() => setDropped(undefined)}
      />
    </>
  );
}
