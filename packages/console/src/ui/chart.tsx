// A chart of values over time (uPlot), with the same numbers as a table for people who cannot see it.

import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import styles from './chart.module.css';

interface ChartSeries {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** A token from tokens.css, such as `--accent`. */
  readonly color: string;
  /** Lengths of dashes and gaps, so that series do not differ by colour alone. */
  readonly dash?: number[];
}

interface TimeChartProps {
  readonly label: string;
  /** Unix times in seconds, ascending. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
}

const HEIGHT = 168;
const TABLE_ROWS_MAX = 30;
const SHOWN_SECONDS_MIN = 60;

export function TimeChart(props: TimeChartProps) {
  const { label, times, series, format } = props;
  return (
    <figure className={styles.figure}>
      <figcaption className={styles.caption}>
        <span className={styles.title}>{label}</span>
        {series.map((each) => (
          <span key={each.label} className={styles.key}>
            <LineSample {...each} />
            {each.label}
            <span className={styles.latest}>{formatLast(each.values, format)}</span>
          </span>
        ))}
      </figcaption>
      <Plot {...props} />
      <ChartTable label={label} times={times} series={series} format={format} />
    </figure>
  );
}

function LineSample({ color, dash }: ChartSeries) {
  return (
    <svg width="18" height="8" aria-hidden>
      <line
        x1="0"
        x2="18"
        y1="4"
        y2="4"
        stroke={`var(${color})`}
        strokeWidth="2"
        strokeDasharray={dash?.join(' ')}
      />
    </svg>
  );
}

function Plot({ times, series, format }: TimeChartProps) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const data = [times, ...series.map(({ values }) => values)] as unknown as uPlot.AlignedData;
  // The plot is created once: its series never change, only their values.
  // biome-ignore lint/correctness/useExhaustiveDependencies: created once
  useEffect(() => {
    const created = new uPlot(optionsOf(series, format, holder.current!), data, holder.current!);
    plot.current = created;
    const observer = new ResizeObserver(([entry]) =>
      created.setSize({ width: Math.floor(entry!.contentRect.width), height: HEIGHT }),
    );
    observer.observe(holder.current!);
    const stopWatching = watchTheme(() => created.redraw(false));
    return () => {
      observer.disconnect();
      stopWatching();
      created.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(data));
  return <div ref={holder} className={styles.plot} aria-hidden />;
}

function optionsOf(
  series: readonly ChartSeries[],
  format: (value: number) => string,
  holder: HTMLElement,
): uPlot.Options {
  const color = (token: string) => () => colorOf(holder, token);
  const axis = {
    stroke: color('--text-muted'),
    grid: { stroke: color('--border'), width: 1 },
    ticks: { show: false },
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
  };
  return {
    width: Math.max(1, holder.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      // Read from the data, because uPlot passes a range of a day if there is only one time.
      x: { range: ({ data: [times] }) => timeRange(times[0], times.at(-1)) },
      y: { range: (_, __, max) => [0, niceMax(max)] },
    },
    axes: [
      { ...axis, size: 28, space: 90, values: (_, times) => times.map(formatClock) },
      { ...axis, size: 64, values: (_, values) => values.map(format) },
    ],
    series: [
      {},
      ...series.map((each) => ({
        label: each.label,
        stroke: color(each.color),
        width: 2,
        // A line needs two points; a value between gaps is a dot.
        points: { show: false, size: 6, fill: color(each.color), filter: dotsOf },
        ...(each.dash !== undefined && { dash: each.dash }),
      })),
    ],
  };
}

/** The positions of values without neighbours. */
function dotsOf({ data }: uPlot, series: number): number[] | null {
  const values = data[series]!;
  const isGap = (at: number) => values[at] == null;
  const dots = [...values.keys()].filter((at) => !isGap(at) && isGap(at - 1) && isGap(at + 1));
  return dots.length === 0 ? null : dots;
}

/** At least a minute, so that the first seconds do not fill the chart. Unix times in seconds. */
function timeRange(first: number | undefined, last: number | undefined): [number, number] {
  const end = last ?? Date.now() / 1000;
  return [Math.min(first ?? end, end - SHOWN_SECONDS_MIN), end];
}

/** Leaves room above the highest value, and keeps the line of an idle chart at the bottom. */
function niceMax(max: number | null): number {
  return max === null || max <= 0 ? 1 : max * 1.1;
}

/** Unix time in seconds → 14:05:09 in the time zone of the browser. */
function formatClock(time: number): string {
  return new Date(time * 1000).toLocaleTimeString('en-GB');
}

/** A canvas does not accept `var()`, so the token's colour is read from an element. */
function colorOf(holder: HTMLElement, token: string): string {
  holder.style.color = `var(${token})`;
  const color = getComputedStyle(holder).color;
  holder.style.color = '';
  return color;
}

function watchTheme(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  const system = matchMedia('(prefers-color-scheme: dark)');
  system.addEventListener('change', listener);
  return () => {
    observer.disconnect();
    system.removeEventListener('change', listener);
  };
}

function ChartTable({ label, times, series, format }: TimeChartProps) {
  const [isOpen, setOpen] = useState(false);
  const rows = isOpen ? times.map((_, at) => at).slice(-TABLE_ROWS_MAX) : [];
  return (
    <details className={styles.details} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        As a table<span className="visually-hidden">: {label}</span>
      </summary>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map((each) => (
              <th key={each.label} scope="col">
                {each.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.reverse().map((at) => (
            <tr key={times[at]}>
              <th scope="row">{formatClock(times[at]!)}</th>
              {series.map(({ label: name, values }) => (
                <td key={name}>{formatLast(values.slice(at, at + 1), format)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function formatLast(values: readonly (number | null)[], format: (value: number) => string): string {
  const value = values.at(-1) ?? null;
  return value === null ? '–' : format(value);
}
