// The scores of the nearest neighbours of a sample as bars, on which a threshold is chosen by clicking or dragging, or
// with the keyboard on the slider below.

import type { PointerEvent } from 'react';
import { formatCount, formatScore, pluralize } from '../../ui/format.js';
import styles from './score-histogram.module.css';
import {
  countAtLeast,
  histogramOf,
  predictPairs,
  type ScoreSample,
  type SuggestedThreshold,
  TOP_SHARE,
} from './score-sample.js';

interface ScoreHistogramProps {
  readonly sample: ScoreSample;
  readonly suggested: SuggestedThreshold;
  /** NaN if the text of the threshold is not a number. */
  readonly threshold: number;
  readonly onChange: (threshold: number) => void;
}

const BARS = 64;
const WIDTH = 640;
const HEIGHT = 96;
/** A few duplicates among many vectors must be visible. */
const BAR_HEIGHT_MIN = 3;
/** Steps of the slider over the whole width. */
const STEPS = 1_000;

export function ScoreHistogram(props: ScoreHistogramProps) {
  const { sample, threshold, onChange } = props;
  const histogram = histogramOf(sample, BARS);
  if (histogram === undefined) return null;
  const { from, to, counts } = histogram;
  const step = (to - from) / STEPS;
  const tallest = Math.max(...counts);
  const shareOf = (score: number) => Math.min(1, Math.max(0, (score - from) / (to - from)));
  const change = (score: number) => onChange(roundTo(score, step));
  const choose = (event: PointerEvent<SVGSVGElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
    change(from + share * (to - from));
  };
  const x = shareOf(threshold) * WIDTH;
  return (
    <figure className={styles.figure}>
      <figcaption className={styles.caption}>
        Nearest neighbours of{' '}
        {sample.rowCount < sample.vectorCount
          ? `${pluralize(sample.rowCount, 'sampled vector')}`
          : 'all vectors'}
        , by score
      </figcaption>
      <svg
        className={styles.bars}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        aria-hidden
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          choose(event);
        }}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) choose(event);
        }}
      >
        {counts.map((count, bar) => {
          const left = (bar * WIDTH) / BARS;
          const height = count === 0 ? 0 : Math.max(BAR_HEIGHT_MIN, (count / tallest) * HEIGHT);
          const end = from + ((bar + 1) / BARS) * (to - from);
          return (
            <rect
              key={end}
              className={end > threshold || bar === BARS - 1 ? styles.above : styles.below}
              x={left + 0.5}
              y={HEIGHT - height}
              width={WIDTH / BARS - 1}
              height={height}
            />
          );
        })}
        {Number.isFinite(threshold) && (
          <line className={styles.line} x1={x} x2={x} y1={0} y2={HEIGHT} />
        )}
      </svg>
      <input
        type="range"
        className={styles.slider}
        aria-label="Minimum score, on the histogram"
        aria-valuetext={Number.isFinite(threshold) ? formatScore(threshold) : 'none'}
        min={0}
        max={STEPS}
        value={Math.round(shareOf(threshold) * STEPS) || 0}
        onChange={(event) => change(from + Number(event.target.value) * step)}
      />
      <div className={styles.ends}>
        <span>{formatScore(roundTo(from, step))}</span>
        <span>tallest bar: {formatCount(tallest)}</span>
        <span>{formatScore(roundTo(to, step))}</span>
      </div>
      <Prediction {...props} />
    </figure>
  );
}

const REASONS = {
  gap: 'in the widest gap between the sampled scores',
  top: `reached by ${100 * TOP_SHARE} % of the sample, since no gap separates duplicates`,
} satisfies Record<SuggestedThreshold['reason'], string>;

function Prediction({ sample, suggested, threshold, onChange }: ScoreHistogramProps) {
  const isSuggested = threshold === suggested.threshold;
  return (
    <div className={styles.notes}>
      <p role="status">{Number.isFinite(threshold) && predictionOf(sample, threshold)}</p>
      <p className={styles.muted}>
        {isSuggested ? 'This score is suggested: ' : 'Suggested: '}
        {!isSuggested && (
          <>
            <button
              type="button"
              className={styles.suggestion}
              onClick={() => onChange(suggested.threshold)}
            >
              {suggested.threshold}
            </button>
            ,{' '}
          </>
        )}
        {REASONS[suggested.reason]}.
      </p>
    </div>
  );
}

function predictionOf(sample: ScoreSample, threshold: number): string {
  const { pairCount, isAtLeast } = predictPairs(sample, threshold);
  const isSample = sample.rowCount < sample.vectorCount;
  const rowCount = countAtLeast(sample.nearest, threshold);
  if (isSample && rowCount === 0) return 'No sampled vector has a neighbour with this score.';
  const kind = isAtLeast ? 'At least ' : isSample ? 'About ' : '';
  const from = isSample ? `, predicted from ${formatCount(rowCount)} of the sample` : '';
  return `${kind}${pluralize(pairCount, 'pair')} with this score${from}.`;
}

/** Rounds to the digits that a step changes. */
function roundTo(value: number, step: number): number {
  const decimals = Math.min(12, Math.max(0, Math.ceil(-Math.log10(step))));
  return Number(value.toFixed(decimals));
}
