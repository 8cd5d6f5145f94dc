// A strip of bars and a few figures for the values of a vector.

/** The number of bars; more bars would be narrower than a pixel. */
const BAR_COUNT = 64;
const HEIGHT = 16;

/**
 * The values as bars: an SVG path in a box of 64 × 16, scaled by the largest magnitude. Bars start in the middle or, if no
 * value is negative, at the bottom. If there are more than 64 values, a bar shows the one with the largest magnitude of
 * several.
 */
export function stripPath(values: ArrayLike<number>): string {
  const barCount = Math.min(BAR_COUNT, values.length);
  const bars = Array.from({ length: barCount }, (_, bar) =>
    largestIn(values, boundary(bar), boundary(bar + 1)),
  );
  const largest = Math.max(...bars.map(Math.abs), Number.MIN_VALUE);
  const width = BAR_COUNT / barCount;
  const zero = bars.some((value) => value < 0) ? HEIGHT / 2 : HEIGHT;
  return bars
    .map((value, bar) => {
      const height = (value / largest) * zero;
      return `M${round(bar * width)} ${zero}h${round(width * 0.75)}v${round(-height)}h${round(-width * 0.75)}z`;
    })
    .join('');

  function boundary(bar: number): number {
    return Math.floor((bar * values.length) / barCount);
  }
}

export interface ValuesSummary {
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  /** Euclidean length. */
  readonly norm: number;
  readonly zeroCount: number;
}

/** @param values at least one */
export function summarizeValues(values: ArrayLike<number>): ValuesSummary {
  let [min, max, sum, squares, zeroCount] = [Infinity, -Infinity, 0, 0, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    min = Math.min(min, value);
    max = Math.max(max, value);
    sum += value;
    squares += value * value;
    if (value === 0) zeroCount++;
  }
  return { min, max, mean: sum / values.length, norm: Math.sqrt(squares), zeroCount };
}

function largestIn(values: ArrayLike<number>, from: number, to: number): number {
  let largest = 0;
  for (let i = from; i < to; i++) {
    if (Math.abs(values[i]!) > Math.abs(largest)) largest = values[i]!;
  }
  return largest;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
