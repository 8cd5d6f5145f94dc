// Labels for the kinds of vectors, and form fields to choose a vector and a metric.

import type { CollectionVector, Metric } from '@sagitta/client';
import { BIT_METRICS, METRICS, VALUE_METRICS } from '../../../../src/common/types.js';
import type { VectorKind } from '../../../../src/common/vectors.js';
import { SelectField } from '../ui/field.js';
import { metricName } from './metric-name.js';

export const KIND_LABELS: Readonly<Record<VectorKind, string>> = {
  dense: 'One vector',
  multi: 'List of vectors',
  sparse: 'Sparse',
};

interface VectorSelectProps {
  readonly label?: string;
  readonly vectors: readonly CollectionVector[];
  readonly using: string;
  readonly onChange: (using: string) => void;
}

/** Chooses one of the collection's vectors; hidden if there is only one. */
export function VectorSelect({ label = 'Vector', vectors, using, onChange }: VectorSelectProps) {
  if (vectors.length < 2) return null;
  const options = vectors.map((vector) => ({ value: vector.name, label: labelOf(vector) }));
  return <SelectField label={label} value={using} options={options} onChange={onChange} />;
}

function labelOf(vector: CollectionVector): string {
  const size = vector.kind === 'sparse' ? 'sparse' : `${vector.dimension} dimensions`;
  return `${vector.name === '' ? 'Unnamed' : vector.name} (${size})`;
}

interface MetricFieldProps {
  /** The metric of the vectors; absent for a new collection. */
  readonly own?: Metric | undefined;
  readonly metric: Metric;
  readonly hint?: string;
  readonly error?: string | undefined;
  readonly onChange: (metric: Metric) => void;
}

export function MetricField({ own, metric, hint, error, onChange }: MetricFieldProps) {
  // Vectors of bits are recognized by their own metric.
  const metrics = own !== undefined && BIT_METRICS.has(own) ? METRICS : VALUE_METRICS;
  const options = metrics.map((value) => ({ value, label: metricName(value) }));
  return (
    <SelectField
      label="Metric"
      hint={hint}
      error={error}
      value={metric}
      options={options}
      onChange={onChange}
    />
  );
}
