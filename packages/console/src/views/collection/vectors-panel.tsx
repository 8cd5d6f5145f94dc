// The vectors that each record of a collection may have: unnamed, named, sparse.

import { type CollectionVector, vectorsOf } from '@sagitta/client';
import { useState } from 'react';
import { UNNAMED } from '../../../../../src/common/vectors.js';
import { Button } from '../../ui/button.js';
import { type Column, DataTable } from '../../ui/data-table.js';
import { formatCount } from '../../ui/format.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { KIND_LABELS } from '../vector-fields.js';
import { DropVector } from './change-vectors.js';

const COLUMNS: readonly Column<CollectionVector>[] = [
  { label: 'Vector', cell: ({ name }) => name || '(unnamed)' },
  { label: 'Kind', cell: ({ kind }) => KIND_LABELS[kind].toLowerCase() },
  {
    label: 'Dimension',
    kind: 'number',
    cell: (vector) => (vector.kind === 'sparse' ? '–' : formatCount(vector.dimension)),
  },
  {
    label: 'Metric',
    cell: ({ kind, metric }) => (kind === 'multi' ? `MaxSim of ${metric}` : metric),
  },
];

/** Shown only when there is more than the unnamed vector, which the settings have. */
export function VectorsPanel({ collection }: CollectionViewProps) {
  const [dropped, setDropped] = useState<CollectionVector>();
  const vectors = vectorsOf(collection);
  if (vectors.every(({ name }) => name === UNNAMED)) return null;
  const drop = {
    label: 'Actions',
    isLabelHidden: true,
    kind: 'actions' as const,
    cell: (vector: CollectionVector) =>
      vector.name !== UNNAMED && (
        <Button aria-label={`Drop ${vector.name}`} onClick={() => setDropped(vector)}>
          Drop
        </Button>
      ),
  };
  return (
    <>
      <DataTable
        label="Vectors of each record"
        columns={[...COLUMNS, drop]}
        rows={vectors}
        keyOf={({ name }) => name}
      />
      <DropVector collection={collection} vector={dropped} onClose={() => setDropped(undefined)} />
    </>
  );
}
