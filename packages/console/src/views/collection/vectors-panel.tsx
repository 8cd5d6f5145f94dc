// The vectors that a collection defines for each record: unnamed, named and sparse.

import { type CollectionVector, vectorsOf } from '@sagitta/client';
import { useState } from 'react';
import { UNNAMED } from '../../../../../src/common/vectors.js';
import { Button } from '../../ui/button.js';
import { type DataColumn, DataTable } from '../../ui/data-table.js';
import { formatCount } from '../../ui/format.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { metricName } from '../metric-name.js';
import { KIND_LABELS } from '../vector-fields.js';
import { DropVector } from './change-vectors.js';

const COLUMNS: readonly DataColumn<CollectionVector>[] = [
  { label: 'Vector', cell: ({ name }) => name || '(unnamed)' },
  { label: 'Kind', cell: ({ kind }) => KIND_LABELS[kind].toLowerCase() },
  {
    label: 'Dimension',
    kind: 'number',
    cell: (vector) => (vector.kind === 'sparse' ? '–' : formatCount(vector.dimension)),
  },
  {
    label: 'Metric',
    cell: ({ kind, metric }) =>
      kind === 'multi' ? `MaxSim of ${metricName(metric)}` : metricName(metric),
  },
];

/** Hidden if the collection has only the unnamed vector, which the settings already show. */
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
