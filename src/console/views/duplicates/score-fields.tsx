// The fields of a search by score: which vectors, the metric, and the least score with its meaning.

import type { Metric } from '../../../client/client.js';
import { Field, SelectField, TextInput } from '../../ui/field.js';
import { type DenseVector, labelOf, metricsBeside } from '../dense-vectors.js';
import styles from './duplicates.module.css';
import { scoreScale } from './score-scale.js';

interface VectorFieldProps {
  readonly label?: string;
  readonly vectors: readonly DenseVector[];
  readonly using: string;
  readonly onChange: (using: string) => void;
}

/** Which vector of the records is compared; nothing where there is only one. */
export function VectorField({ label = 'Vector', vectors, using, onChange }: VectorFieldProps) {
  if (vectors.length < 2) return null;
  return (
    <SelectField
      label={label}
      value={using}
      options={vectors.map((vector) => ({ value: vector.name, label: labelOf(vector) }))}
      onChange={onChange}
    />
  );
}

const METRIC_LABELS: Record<Metric, string> = {
  cosine: 'Cosine',
  dot: 'Dot product',
  euclidean: 'Euclidean',
  jaccard: 'Jaccard',
  hamming: 'Hamming',
};

interface MetricFieldProps {
  /** That of the vectors. */
  readonly own: Metric | undefined;
  readonly metric: Metric;
  readonly onChange: (metric: Metric) => void;
}

export function MetricField({ own, metric, onChange }: MetricFieldProps) {
  return (
    <SelectField
      label="Metric"
      value={metric}
      options={metricsBeside(own).map((value) => ({ value, label: METRIC_LABELS[value] }))}
      onChange={onChange}
    />
  );
}

interface ThresholdFieldProps {
  readonly metric: Metric;
  readonly text: string;
  /** Not a number when the text is not one. */
  readonly threshold: number;
  /** Without a threshold, an empty text is fine. */
  readonly isOptional?: boolean;
  readonly onChange: (text: string) => void;
}

/** A slider and the number itself; scores without limits have only the number. */
export function ThresholdField(props: ThresholdFieldProps) {
  const { metric, text, threshold, isOptional = false, onChange } = props;
  const { range, explain } = scoreScale(metric);
  const isAbsent = isOptional && text.trim() === '';
  const error = Number.isFinite(threshold) || isAbsent ? undefined : 'Expected a number.';
  return (
    <Field
      label="Score of at least"
      error={error}
      hint={isAbsent ? 'Every score is good enough.' : explain(threshold)}
    >
      {(control) => (
        <div className={styles.threshold}>
          {range !== undefined && (
            <input
              type="range"
              aria-label="Score of at least, as a slider"
              {...range}
              value={Number.isFinite(threshold) ? threshold : range.min}
              onChange={(event) => onChange(event.target.value)}
            />
          )}
          <TextInput
            {...control}
            inputMode="decimal"
            className={styles.number}
            value={text}
            onChange={onChange}
          />
        </div>
      )}
    </Field>
  );
}
