// Distributions of values: bars for the most frequent values, and histograms of numbers.

import { stringifyExactJson } from '../../../../src/common/exact-json.js';
import styles from './distribution.module.css';
import { formatCount, formatNumber } from './format.js';

interface ValueBarsProps {
  readonly label: string;
  readonly values: readonly { readonly value: string | number | boolean; readonly count: number }[];
}

export function ValueBars({ label, values }: ValueBarsProps) {
  const most = Math.max(1, ...values.map(({ count }) => count));
  return (
    <ul className={styles.values} aria-label={label}>
      {values.map(({ value, count }) => (
        <li key={`${typeof value}:${value}`} className={styles.value}>
          <span className={styles.text} title={textOf(value)} dir="auto">
            {value === '' ? '(empty text)' : textOf(value)}
          </span>
          <span className={styles.track} aria-hidden>
            <span
              className={styles.bar}
              style={{ display: 'block', width: `${(100 * count) / most}%` }}
            />
          </span>
          <span className={styles.count}>{formatCount(count)}</span>
        </li>
      ))}
    </ul>
  );
}

function textOf(value: string | number | boolean): string {
  return typeof value === 'string' ? value : stringifyExactJson(value);
}

interface HistogramBarsProps {
  readonly label: string;
  readonly buckets: readonly {
    readonly from: number;
    readonly to: number;
    readonly count: number;
  }[];
}

export function HistogramBars({ label, buckets }: HistogramBarsProps) {
  const most = Math.max(1, ...buckets.map(({ count }) => count));
  const width = 100 / Math.max(1, buckets.length);
  const first = buckets[0];
  const last = buckets.at(-1);
  if (first === undefined || last === undefined) return null;
  return (
    <figure className={styles.histogram}>
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={label}>
        {buckets.map(({ from, to, count }, at) => (
          <rect
            key={from}
            x={at * width + width * 0.06}
            y={40 - (40 * count) / most}
            width={width * 0.88}
            height={(40 * count) / most}
            fill="var(--accent)"
          >
            <title>{`${formatNumber(from)} to ${formatNumber(to)}: ${formatCount(count)}`}</title>
          </rect>
        ))}
      </svg>
      <figcaption className={styles.ends}>
        <span>{formatNumber(first.from)}</span>
        <span>tallest bar: {formatCount(most)}</span>
        <span>{formatNumber(last.to)}</span>
      </figcaption>
    </figure>
  );
}
