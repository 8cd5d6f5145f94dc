// The facets and the statistics in a reply. A click on a value adds it to the filter of the query, or removes it.

import type { JsonObject, QueryReply } from '@sagitta/client';
import { classNames } from '../../ui/class-names.js';
import { formatCount, formatNumber, pluralize } from '../../ui/format.js';
import { formatValue } from '../vectors/preview.js';
import { hasValue, type Scalar } from './facet-filter.js';
import styles from './query.module.css';

interface ReplySummariesProps {
  readonly reply: QueryReply;
  readonly filter: JsonObject | undefined;
  readonly onToggle: (path: string, value: Scalar) => void;
}

export function ReplySummaries({ reply, filter, onToggle }: ReplySummariesProps) {
  const { facets = [], stats = [] } = reply;
  if (facets.length === 0 && stats.length === 0) return null;
  return (
    <div className={styles.summaries}>
      {facets.map(({ path, values, distinct_count, missing_count }) => (
        <section key={path} className={styles.figure} aria-label={`Values of ${path}`}>
          <p className={styles.caption}>
            <strong>
              <bdi>{path}</bdi>
            </strong>
            <span className={styles.note}>
              {pluralize(distinct_count, 'value')}
              {missing_count > 0 && `, ${formatCount(missing_count)} without`}
            </span>
          </p>
          <ul className={styles.facetValues}>
            {values.map(({ value, count }) => {
              const isChosen = hasValue(filter, path, value);
              return (
                <li key={`${typeof value} ${value}`}>
                  <button
                    type="button"
                    className={classNames(styles.facetValue, isChosen && styles.chosen)}
                    aria-pressed={isChosen}
                    onClick={() => onToggle(path, value)}
                  >
                    <bdi>{value === '' ? '(empty text)' : formatValue(value)}</bdi>
                    <span className={styles.note}>{formatCount(count)}</span>
                  </button>
                </li>
              );
            })}
          </ul>
        </section>
      ))}
      {stats.map(({ path, count, min, max, mean }) => (
        <section key={path} className={styles.figure} aria-label={`Numbers of ${path}`}>
          <p className={styles.caption}>
            <strong>
              <bdi>{path}</bdi>
            </strong>
            <span className={styles.note}>{pluralize(count, 'number')}</span>
          </p>
          {min !== undefined && max !== undefined && (
            <p>
              {formatNumber(min)} to {formatNumber(max)}
              {mean !== undefined && `, mean ${formatNumber(mean)}`}
            </p>
          )}
        </section>
      ))}
    </div>
  );
}
