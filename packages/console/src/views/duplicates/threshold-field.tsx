// The minimum score of a search, with an explanation.

import type { Metric } from '@sagitta/client';
import { Field, TextBox } from '../../ui/field.js';
import styles from './duplicates.module.css';
import { scoreScale } from './score-scale.js';

interface ThresholdFieldProps {
  readonly metric: Metric;
  readonly text: string;
  /** NaN if the text is not a number. */
  readonly threshold: number;
  /** Whether the text may be empty, for no threshold. */
  readonly isOptional?: boolean;
  readonly hasSlider?: boolean;
  readonly onChange: (text: string) => void;
}

/** A slider and a number field; only the number field if scores are unbounded or a histogram replaces the slider. */
export function ThresholdField(props: ThresholdFieldProps) {
  const { metric, text, threshold, isOptional = false, hasSlider = true, onChange } = props;
  const { range, explain } = scoreScale(metric);
  const isAbsent = isOptional && text.trim() === '';
  const error = Number.isFinite(threshold) || isAbsent ? undefined : 'Expected a number.';
  return (
    <Field
      label="Minimum score"
      error={error}
      hint={isAbsent ? 'Any score is accepted.' : explain(threshold)}
    >
      {(control) => (
        <div className={styles.threshold}>
          {hasSlider && range !== undefined && (
            <input
              type="range"
              aria-label="Minimum score, as a slider"
              {...range}
              value={Number.isFinite(threshold) ? threshold : range.min}
              onChange={(event) => onChange(event.target.value)}
            />
          )}
          <TextBox
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
