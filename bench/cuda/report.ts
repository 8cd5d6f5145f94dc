// The report of the GPU bench as Markdown: a pure function of the findings, so that recorded lines can be
// rendered without a GPU. It is rendered again after every case.

import type { EngineLine } from './engine-cases.js';
import {
  type CaseShape,
  type DeviceLine,
  isSameCase,
  type KernelLine,
  type TorchDeviceLine,
  type TorchLine,
} from './lines.js';
import type { DriverInfo } from './programs.js';
import { compareWithTorch, type Figures, judge, summarize } from './verdict.js';

/** The results of one run of each program; a device's peaks belong to the cases of the same run. */
export interface Section {
  device: DeviceLine | null;
  torch: TorchDeviceLine | null;
  readonly kernels: KernelLine[];
  readonly torchCases: TorchLine[];
}

export interface Findings {
  readonly isFull: boolean;
  /** CPU, Node and commit. */
  readonly machine: string;
  readonly device: DeviceLine;
  readonly driver: DriverInfo | null;
  readonly sections: readonly Section[];
  readonly engine: readonly EngineLine[];
  /** What was skipped and why, and what failed. */
  readonly notes: readonly string[];
  readonly plannedCount: number;
  readonly isFinished: boolean;
}

export function renderReport(findings: Findings): string {
  const { isFull, isFinished, plannedCount, sections, notes } = findings;
  const all = sections.flatMap(figuresOf);
  const doneCount = all.length + findings.engine.length;
  const claim = isFull ? 'full parameters' : 'smoke parameters (figures are meaningless)';
  return [
    `GPU bench, ${claim}`,
    ...renderMachine(findings),
    ...(isFinished ? [] : ['', `**Not finished: ${doneCount} of ${plannedCount} cases.**`]),
    '',
    ...renderPeaks(sections),
    ...renderShapes(all),
    ...(all.length === 0 ? [] : ['', ...explain(all)]),
    ...renderEngine(findings.engine, all),
    ...(all.length === 0 ? [] : ['', ...renderSummary(all)]),
    ...(notes.length === 0 ? [] : ['', ...notes.map((note) => `- ${note}`)]),
    '',
  ].join('\n');
}

function renderMachine({ device, driver, machine, sections }: Findings): string[] {
  const torch = sections.find((section) => section.torch !== null)?.torch;
  const version = (number: number) => `${Math.floor(number / 1000)}.${(number % 1000) / 10}`;
  const memory = driver === null ? [] : [`${(driver.memoryBytes / 2 ** 30).toFixed(0)} GiB`];
  const power = driver === null || !(Number(driver.watts) > 0) ? [] : [`${driver.watts} W`];
  const software = [
    driver === null
      ? `driver for CUDA ${version(device.driver)}`
      : `driver ${driver.driverVersion}`,
    `CUDA runtime ${version(device.runtime)}`,
    torch === undefined || torch === null
      ? 'no torch'
      : `torch ${torch.torch} (CUDA ${torch.cuda})`,
  ];
  const capability = `compute capability ${(device.compute_capability / 10).toFixed(1)}`;
  return [
    `${[device.device, ...memory, ...power, capability].join(', ')}; ${device.kernels} kernels; ` +
      software.join(', '),
    machine,
  ];
}

function renderPeaks(sections: readonly Section[]): string[] {
  const devices = sections.flatMap(({ device }) => (device === null ? [] : [device]));
  const torch = sections.flatMap((section) => (section.torch === null ? [] : [section.torch]));
  if (devices.length === 0) return [];
  const peaks = [
    `copy ${spread(devices.map((line) => line.copy_gb_per_s))} GB/s`,
    `int8 by mma ${spread(devices.map((line) => line.mma_int8_top_per_s))} Top/s`,
  ];
  // Features that the device lacks are not measured and reported as 0.
  const wgmma = devices.map((line) => line.wgmma_int8_top_per_s).filter((rate) => rate > 0);
  if (wgmma.length > 0) peaks.push(`by wgmma ${spread(wgmma)} Top/s`);
  if (torch.length > 0) {
    const rates = torch.map((line) => line.bf16_flop_per_s / 1e12);
    peaks.push(`bf16 by torch (8192³) ${spread(rates)} TFLOP/s`);
  }
  return [
    `Peaks of this device, measured in each of ${devices.length} runs (median, min to max): ` +
      `${peaks.join(', ')}.`,
  ];
}

function figuresOf(section: Section): Figures[] {
  return section.kernels.map((kernel) => {
    const own = section.torchCases.filter((line) => isSameCase(line, kernel));
    return compareWithTorch(kernel, section.torch, own);
  });
}

function renderShapes(all: readonly Figures[]): string[] {
  const shapeOf = ({ data, rows, dimension }: CaseShape) =>
    `${grouped(rows)} × ${grouped(dimension)}${data === 'clustered' ? '' : `, ${data}`}`;
  const shapes = [...new Set(all.map(({ kernel }) => shapeOf(kernel)))];
  return shapes.flatMap((shape) => [
    '',
    `${shape}:`,
    '',
    ...renderTable(all.filter(({ kernel }) => shapeOf(kernel) === shape)),
  ]);
}

function renderTable(all: readonly Figures[]): string[] {
  const hasTorch = all.some(({ bf16, float32 }) => bf16 !== null || float32 !== null);
  const header = [
    'case',
    'device ms p50',
    'wall ms p50',
    'queries/s',
    'of copy',
    'of int8',
    ...(hasTorch ? ['of torch’s bf16'] : []),
    'rescored/query',
    'undecided',
    ...(hasTorch ? ['to torch bf16', 'to torch float32'] : []),
    'goal',
  ];
  const rows = all.map((figures) => {
    const { kernel, ofCopy, ofInt8, ofBf16, toBf16, toFloat32 } = figures;
    return [
      nameOfCase(kernel),
      milliseconds(kernel.device_ms_p50),
      milliseconds(kernel.wall_ms_p50),
      grouped(kernel.queries_per_s),
      share(ofCopy),
      share(ofInt8),
      ...(hasTorch ? [share(ofBf16)] : []),
      kernel.rescored_per_query.toFixed(0),
      String(kernel.undecided),
      ...(hasTorch ? [ratio(toBf16, figures.bf16), ratio(toFloat32, figures.float32)] : []),
      judge(figures),
    ];
  });
  return table(header, rows);
}

function explain(all: readonly Figures[]): string[] {
  const text =
    'The kernels alone, exact: the results of four queries per case were compared with the CPU ' +
    'kernels, score bits included, before timing. Device times are from CUDA events and include the ' +
    'upload of queries and the download of results; queries/s use wall time. Shares are of peaks ' +
    'measured in the same run: bytes of codes by the copy rate, two operations per value and query ' +
    'by the int8 rate. They are omitted with a filter, which all queries of a batch share, since ' +
    'they would be too high. Undecided queries are left to the CPU, whose time is not included.';
  const recalls = all.flatMap(({ bf16 }) => (bf16?.recall == null ? [] : [bf16.recall]));
  if (recalls.length === 0) return [text];
  const least = Math.min(...recalls).toFixed(3);
  const chunks = Math.max(...all.flatMap(({ bf16, float32 }) => [bf16, float32]).map(chunksOf));
  return [
    text,
    '',
    'torch: `matmul` and `topk` over its own vectors of the same distribution; queries and results ' +
      'stay on the device; float32 without TF32; a filter is a boolean mask that sets scores to −∞ ' +
      `before \`topk\`; scores are selected in at most ${chunks} chunks of rows. Its float32 results ` +
      'are nearly exact but not proven; over 16 queries per case, its bf16 finds ' +
      `${median(recalls).toFixed(3)} (median) of the rows that its float32 finds, ${least} in the ` +
      'worst case. Share of torch’s bf16: queries/s divided by its matrix rate over 2·N·D. Ratios ' +
      'are of device times, with torch’s time in brackets.',
  ];
}

function renderEngine(lines: readonly EngineLine[], all: readonly Figures[]): string[] {
  if (lines.length === 0) return [];
  const rows = lines.map((line) => {
    const bare = all.find(({ kernel }) => isSameCase(kernel, line))?.kernel;
    return [
      `${grouped(line.rows)} × ${grouped(line.dimension)}, ${nameOfCase(line)}`,
      milliseconds(line.p50_ms),
      milliseconds(line.p99_ms),
      grouped(line.queries_per_s),
      bare === undefined ? '—' : milliseconds(bare.wall_ms_p50),
      bare === undefined ? '—' : milliseconds(line.p50_ms - bare.wall_ms_p50),
      line.rescored_per_query.toFixed(0),
      String(line.fallback_queries),
    ];
  });
  const header = [
    'through the engine',
    'p50 ms',
    'p99 ms',
    'queries/s',
    'kernels alone, wall ms',
    'added ms',
    'rescored/query',
    'executed by the CPU',
  ];
  return [
    '',
    ...table(header, rows),
    '',
    'The same through the `cuda` engine: blocks of the size of segments, packing, the worker thread ' +
      'and merging; results are compared with brute force in float64 before timing. The data differ ' +
      'from those of the kernels alone, and so does the number of rescored rows.',
  ];
}

function renderSummary(all: readonly Figures[]): string[] {
  const rows = summarize(all).map(({ goal, metCount, measuredCount, worst }) => [
    goal.what,
    measuredCount === 0 ? 'not measured' : `${metCount} of ${measuredCount} cases`,
    worst === null
      ? '—'
      : `${worst.value}: ${grouped(worst.figures.kernel.rows)} × ` +
        `${grouped(worst.figures.kernel.dimension)}, ${nameOfCase(worst.figures.kernel)}`,
  ]);
  const note = all.every(({ ofBf16 }) => ofBf16 === null)
    ? ['', 'Without torch, the share of bf16 is estimated as twice the share of the int8 rate.']
    : [];
  return [...table(['goal', 'met', 'worst case'], rows), ...note];
}

function nameOfCase({ queries, k, filter_percent }: CaseShape): string {
  const filter = filter_percent === 100 ? '' : `, ${filter_percent} % pass`;
  return `batch of ${grouped(queries)}, k = ${k}${filter}`;
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)];
}

function ratio(value: number | null, line: TorchLine | null): string {
  if (value === null || line === null) return '—';
  return `${value.toFixed(2)} × (${milliseconds(line.device_ms_p50)})`;
}

function chunksOf(line: TorchLine | null): number {
  return line?.chunks ?? 1;
}

function share(value: number | null): string {
  return value === null ? '—' : `${(value * 100).toFixed(0)} %`;
}

function spread(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return `${grouped(median(values))} (${grouped(least)}–${grouped(most)})`;
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]!;
}

function milliseconds(value: number): string {
  return value.toFixed(Math.abs(value) < 10 ? 3 : 1);
}

/** Digits in groups of three, with a decimal for small numbers. */
function grouped(value: number): string {
  if (value < 100) return String(Number(value.toFixed(1)));
  return Math.round(value).toLocaleString('en').replaceAll(',', ' ');
}
