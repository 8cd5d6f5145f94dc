// The least score of a search, with what it means.

import type { Metric } from '@sagitta/client';
import { Field, TextInput } from '../../ui/field.js';
import styles from './duplicates.module.css';
import { scoreScale } from './score-scale.js';

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
