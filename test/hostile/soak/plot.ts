// Draws the samples of a soak as an SVG of small charts over one time axis, with a line at each restart.

import type { Sample } from './samples.js';
import { byProcess } from './trend.js';

interface Series {
  readonly name: string;
  readonly colour: string;
  readonly of: (sample: Sample) => number;
}

interface Chart {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
  readonly isLogarithmic?: true;
}

const BLUE = '#1f6feb';
const ORANGE = '#d9730d';
const GREEN = '#2d7d46';

const CHARTS: readonly Chart[] = [
  {
    title: 'Memory',
    unit: 'MB',
    series: [
      { name: 'resident', colour: BLUE, of: ({ residentBytes }) => residentBytes / 1e6 },
      { name: 'anonymous', colour: ORANGE, of: ({ anonymousBytes }) => anonymousBytes / 1e6 },
      { name: 'heap', colour: GREEN, of: ({ heapBytes }) => heapBytes / 1e6 },
    ],
  },
  {
    title: 'Descriptors and threads',
    unit: '',
    series: [
      { name: 'descriptors', colour: BLUE, of: ({ descriptors }) => descriptors },
      { name: 'threads', colour: ORANGE, of: ({ threads }) => threads },
    ],
  },
  {
    title: 'Data directory',
    unit: 'MB',
    series: [
      { name: 'length of files', colour: BLUE, of: ({ diskBytes }) => diskBytes / 1e6 },
      { name: 'allocated', colour: ORANGE, of: ({ allocatedBytes }) => allocatedBytes / 1e6 },
    ],
  },
  {
    title: 'Latency of all requests, logarithmic',
    unit: 'ms',
    isLogarithmic: true,
    series: [
      { name: 'p50', colour: BLUE, of: ({ p50 }) => p50 },
      { name: 'p99', colour: ORANGE, of: ({ p99 }) => p99 },
    ],
  },
];

const WIDTH = 900;
const CHART_HEIGHT = 170;
const MARGIN = { left: 60, right: 20, top: 34, bottom: 22 };
const PLOT_WIDTH = WIDTH - MARGIN.left - MARGIN.right;
const PLOT_HEIGHT = CHART_HEIGHT - MARGIN.top - MARGIN.bottom;

export function plotSoak(samples: readonly Sample[], title: string): string {
  const height = 40 + CHARTS.length * CHART_HEIGHT + 20;
  const charts = CHARTS.map((chart, i) => drawChart(chart, samples, 40 + i * CHART_HEIGHT));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12" fill="#24292f">`,
    `<title>${escapeText(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    `<text x="${MARGIN.left}" y="24" font-size="15">${escapeText(title)}</text>`,
    ...charts,
    `<text x="${MARGIN.left + PLOT_WIDTH / 2}" y="${height - 6}" text-anchor="middle">minutes; grey lines are restarts</text>`,
    '</svg>',
    '',
  ].join('\n');
}

function drawChart(chart: Chart, samples: readonly Sample[], top: number): string {
  const end = Math.max(1, samples.at(-1)?.seconds ?? 1);
  const x = (seconds: number) => MARGIN.left + (PLOT_WIDTH * seconds) / end;
  const { y, ticks } = scaleOf(chart, samples, top);
  const parts = [
    `<text x="${MARGIN.left}" y="${top + 20}" font-weight="bold">${chart.title}${chart.unit && `, ${chart.unit}`}</text>`,
  ];
  for (const tick of ticks) {
    parts.push(
      `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(tick).toFixed(1)}" y2="${y(tick).toFixed(1)}" stroke="#e1e4e8"/>`,
      `<text x="${MARGIN.left - 6}" y="${(y(tick) + 4).toFixed(1)}" text-anchor="end">${tick}</text>`,
    );
  }
  for (const minute of minutesOf(end)) {
    parts.push(
      `<text x="${x(minute * 60).toFixed(1)}" y="${top + CHART_HEIGHT - 6}" text-anchor="middle">${minute}</text>`,
    );
  }
  for (const seconds of restartsIn(samples)) {
    parts.push(
      `<line x1="${x(seconds).toFixed(1)}" x2="${x(seconds).toFixed(1)}" y1="${top + MARGIN.top}" y2="${top + MARGIN.top + PLOT_HEIGHT}" stroke="#8c959f" stroke-dasharray="3 3"/>`,
    );
  }
  for (const [i, { name, colour, of }] of chart.series.entries()) {
    for (const ofProcess of byProcess(samples)) {
      const points = ofProcess
        .filter((sample) => !Number.isNaN(of(sample)))
        .map((sample) => `${x(sample.seconds).toFixed(1)},${y(of(sample)).toFixed(1)}`);
      parts.push(
        `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="1.5"/>`,
      );
    }
    parts.push(
      `<text x="${WIDTH - MARGIN.right - 110 * (chart.series.length - i - 1)}" y="${top + 20}" text-anchor="end" fill="${colour}">${name}</text>`,
    );
  }
  return parts.join('\n');
}

function scaleOf(
  { series, isLogarithmic }: Chart,
  samples: readonly Sample[],
  top: number,
): { y: (value: number) => number; ticks: number[] } {
  const values = samples.flatMap((sample) => series.map(({ of }) => of(sample)));
  const known = values.filter((value) => !Number.isNaN(value));
  const max = Math.max(1, ...known);
  const bottom = top + MARGIN.top + PLOT_HEIGHT;
  if (isLogarithmic !== true) {
    const step = niceStep(max / 4);
    const end = step * Math.ceil(max / step);
    const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, i) => i * step);
    return { y: (value) => bottom - (PLOT_HEIGHT * value) / end, ticks };
  }
  const low = Math.floor(Math.log10(Math.max(0.1, Math.min(...known))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(max)));
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  const share = (value: number) => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low);
  return { y: (value) => bottom - PLOT_HEIGHT * share(value), ticks };
}

/** 1, 2 or 5 times a power of ten. */
function niceStep(raw: number): number {
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= raw)!;
  return Math.max(1, factor * power);
}

function minutesOf(seconds: number): number[] {
  const step = niceStep(seconds / 60 / 10);
  const count = Math.floor(seconds / 60 / step) + 1;
  return Array.from({ length: count }, (_, i) => i * step);
}

function restartsIn(samples: readonly Sample[]): number[] {
  const isFirst = (i: number) => i > 0 && samples[i]!.process !== samples[i - 1]!.process;
  return samples
    .filter((_, i) => isFirst(i))
    .map(({ seconds, processSeconds }) => seconds - processSeconds);
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
