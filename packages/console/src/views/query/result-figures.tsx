// The figures of a query: the distribution of scores, and the time spent in each part.

import type { Explain } from '@sagitta/client';
import { HistogramBars } from '../../ui/distribution.js';
import { Checkbox } from '../../ui/field.js';
import { formatCount, formatMilliseconds, formatScore, pluralize } from '../../ui/format.js';
import styles from './query.module.css';
import { scoreBuckets } from './score-buckets.js';
import { timedParts } from './timings.js';
import type { FoundPage, Matches } from './use-matches.js';

const BUCKET_COUNT = 24;

interface ScoresProps {
  readonly result: Matches;
  readonly hasAllScores: boolean;
  /** Undefined if the server does not offer the scores of all vectors. */
  readonly onAllScores: ((hasAllScores: boolean) => void) | undefined;
}

export function Scores({ result, hasAllScores, onAllScores }: ScoresProps) {
  const all = result.first?.reply.score_stats;
  const shown = result.matches.map(({ score }) => score);
  const buckets = all?.histogram?.buckets ?? scoreBuckets(shown, BUCKET_COUNT);
  const count = all?.count ?? shown.length;
  return (
    <figure className={styles.figure}>
      <figcaption className={styles.caption}>
        <strong>Scores</strong>
        <span className={styles.note}>
          {all === undefined
            ? `of the ${formatCount(count)} shown`
            : `of ${formatCount(count)} vectors, mean ${formatScore(all.mean ?? 0)}`}
        </span>
        {onAllScores !== undefined && (
          <Checkbox label="All vectors" isChecked={hasAllScores} onChange={onAllScores} />
        )}
      </figcaption>
      <HistogramBars label="Distribution of scores" buckets={buckets} />
    </figure>
  );
}

export function Timings({ page }: { readonly page: FoundPage }) {
  const { explain } = page.reply;
  if (explain === undefined) return null;
  const parts = timedParts(explain, page.totalMs);
  return (
    <figure className={styles.figure}>
      <figcaption className={styles.caption}>
        <strong>Time</strong>
        <span className={styles.note}>{formatMilliseconds(page.totalMs)}</span>
      </figcaption>
      <div className={styles.timeBar} aria-hidden>
        {parts.map(({ name, share }) => (
          <span key={name} className={styles[name]} style={{ width: `${share * 100}%` }} />
        ))}
      </div>
      <ul className={styles.legend}>
        {parts.map(({ name, label, ms }) => (
          <li key={name}>
            <span className={`${styles.key} ${styles[name]}`} aria-hidden />
            {label} <strong>{formatMilliseconds(ms)}</strong>
          </li>
        ))}
      </ul>
      <p className={styles.note}>{describeSearch(explain)}</p>
    </figure>
  );
}

function describeSearch(explain: Explain): string {
  const figures = [
    `${formatCount(explain.rows_scanned)} rows scanned in ${pluralize(explain.segment_count, 'segment')}`,
    `${formatCount(explain.rows_passed_filter)} candidates`,
    `${formatCount(explain.candidates_rescored)} rescored`,
    ...(explain.is_certified ? ['certified exact'] : []),
  ];
  return `${explain.engine}: ${figures.join(', ')}`;
}
