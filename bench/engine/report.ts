// The report of the engine bench as Markdown tables, with the meaning of the columns below them.

import { describeMachine, THREAD_COUNT } from './machine.js';
import type { KernelFailure, KernelScan, Peak, Peaks } from './peaks.js';
import type { PeerResult } from './peers.js';
import type { CaseResult } from './run-case.js';
import { SEED } from './vectors.js';

export interface Findings {
  readonly isFull: boolean;
  readonly engineName: string;
  readonly engineReason: string;
  readonly peaks: Peaks;
  /** One line per data set: size, blocks, codes. */
  readonly dataLines: readonly string[];
  readonly cases: readonly CaseResult[];
  readonly kernels: readonly (KernelScan | KernelFailure)[];
  readonly peers: readonly PeerResult[];
  /** Why there are no peers; null otherwise. */
  readonly peersMissing: string | null;
}

export function renderReport(findings: Findings): string {
  const { isFull, engineName, engineReason, dataLines } = findings;
  const claim = isFull ? 'full parameters' : 'smoke parameters (figures are meaningless)';
  return [
    `Engine bench, engine ${engineName} (${engineReason}), ${claim}, seed ${SEED}`,
    describeMachine(),
    '',
    ...renderPeaks(findings.peaks),
    '',
    ...dataLines.map((line) => `- ${line}`),
    '',
    ...renderCases(findings),
    ...renderKernels(findings.kernels),
    '',
    ...renderPeers(findings),
    '',
  ].join('\n');
}

function renderPeaks(peaks: Peaks): string[] {
  const lines: string[] = [];
  const clock = peaks.get('clock_ghz');
  const float32 = peaks.get('f32_gflop_per_s');
  const int8 = peaks.get('int8_gop_per_s');
  if (clock !== null && float32 !== null && int8 !== null) {
    const reads = peaks.reads.map((read) => `${read.bytes / 2 ** 20} MiB at ${spread(read)} GB/s`);
    lines.push(
      `Peaks of this machine on ${THREAD_COUNT} threads at ${clock.median.toFixed(2)} GHz, median (min ` +
        `to max) of ${peaks.runCount} runs spread over the bench: float32 ${spread(float32)} GFLOP/s, ` +
        `int8 ${spread(int8)} Gop/s = ${perCycle(int8, clock)} per thread and cycle, reading ` +
        `${reads.join(', ')}.`,
    );
  }
  if (peaks.missing !== null) lines.push(`${peaks.missing}.`);
  return lines;
}

function renderCases({ cases, peaks }: Findings): string[] {
  if (cases.length === 0) return [];
  const rates = new Map(
    cases.map(({ benchCase, timing }) => [benchCase.name, timing.queriesPerSecond]),
  );
  const rows = cases.map((result) => {
    const { benchCase, timing } = result;
    const baseRate = benchCase.baseline === null ? undefined : rates.get(benchCase.baseline);
    const scan = scanRates(result);
    return [
      benchCase.name,
      milliseconds(timing.p50Ms),
      milliseconds(timing.p99Ms),
      grouped(timing.queriesPerSecond),
      scan === null ? '—' : scan.gbPerSecond.toFixed(1),
      scan === null ? '—' : grouped(scan.gopPerSecond),
      scan === null ? '—' : shareOfPeak(scan, result.data, peaks),
      result.rescoredPerQuery.toFixed(0),
      baseRate === undefined ? '—' : `${(timing.queriesPerSecond / baseRate).toFixed(2)} ×`,
      (result.residentBytes / 1e6).toFixed(0),
      result.checksum,
    ];
  });
  const { checkedCount } = cases[0]!;
  return [
    ...table(
      [
        'case',
        'p50 ms',
        'p99 ms',
        'queries/s',
        'GB/s',
        'Gop/s',
        'of peak',
        'rescored/query',
        'ratio to unfiltered or first page',
        'RSS MB',
        'checksum',
      ],
      rows,
    ),
    '',
    `k = 10 unless stated otherwise. The results of ${checkedCount} queries per case were compared with ` +
      'brute force in float64 before timing: same ids, same order, same score bits. Times are per ' +
      'call, the rate is that of the median round; with fewer than 100 calls, p99 is the slowest. ' +
      'GB/s counts one byte per value and call, Gop/s a multiplication and an addition per value and ' +
      'query; the peak is the one that bounds the case, for reads that of a working set of at most the ' +
      'bytes of the codes. Ratios are of queries/s.',
  ];
}

interface ScanRates {
  readonly gbPerSecond: number;
  readonly gopPerSecond: number;
}

/** Null with a filter, since rates over all rows would be too high. */
function scanRates({ benchCase, data, timing }: CaseResult): ScanRates | null {
  if (benchCase.passShare !== null) return null;
  const valuesPerSecond = data.rowCount * data.dimension * timing.queriesPerSecond;
  return {
    gbPerSecond: valuesPerSecond / benchCase.batchCount / 1e9,
    gopPerSecond: (2 * valuesPerSecond) / 1e9,
  };
}

/** The case is bound by reads or arithmetic, whichever takes longer at its peak rate. */
function shareOfPeak(
  { gbPerSecond, gopPerSecond }: ScanRates,
  { rowCount, dimension }: CaseResult['data'],
  peaks: Peaks,
): string {
  const read = peaks.readsOf(rowCount * dimension);
  const int8 = peaks.get('int8_gop_per_s');
  if (read === null || int8 === null) return '—';
  const readShare = gbPerSecond / read.median;
  const int8Share = gopPerSecond / int8.median;
  return readShare > int8Share ? `${percent(readShare)} reads` : `${percent(int8Share)} int8`;
}

function renderKernels(kernels: Findings['kernels']): string[] {
  if (kernels.length === 0) return [];
  const rows = kernels.map((scan) => {
    const size = `${scan.shape.rowCount} × ${scan.shape.dimension}, batch of ${scan.queryCount}`;
    if ('failure' in scan) return [scan.target, size, '—', '—', '—', `failed: ${scan.failure}`];
    return [
      scan.target,
      size,
      milliseconds(scan.secondsP50 * 1000),
      grouped(scan.queriesPerSecond),
      grouped(scan.gopPerSecond),
      scan.rescoredPerQuery.toFixed(0),
    ];
  });
  const header = ['kernel', 'case', 'p50 ms', 'queries/s', 'Gop/s', 'rescored/query'];
  return [
    '',
    'The kernels alone, on their own data, with their own check for exactness:',
    '',
    ...table(header, rows),
  ];
}

function renderPeers({ peers, peersMissing, engineName }: Findings): string[] {
  if (peersMissing !== null) return [peersMissing];
  if (peers.length === 0) return ['The peers support none of these cases.'];
  const rows = peers.map(({ peer, kind, caseName, outcome }) => {
    if ('failure' in outcome) {
      return [peer, caseName, '—', '—', '—', '—', `failed: ${outcome.failure}`];
    }
    const { timing, ratio, recall, comparedCount, note } = outcome;
    const found = `recall ${recall.toFixed(4)} over ${comparedCount} queries`;
    return [
      peer,
      caseName,
      milliseconds(timing.p50Ms),
      grouped(timing.queriesPerSecond),
      `${ratio.toFixed(2)} ×`,
      kind === 'graph' ? `approximate, ${found}` : `exhaustive in float32, ${found}`,
      `${note}; ${timing.threadsBusy.toFixed(1)} threads busy`,
    ];
  });
  const header = ['peer', 'case', 'p50 ms', 'queries/s', `Sagitta ${engineName}`, 'answers', 'how'];
  return [
    ...table(header, rows),
    '',
    `The ratio is the queries/s of Sagitta, which is exact, divided by those of the peer. Each peer ran ` +
      `alone on the same vectors in the same run with ${THREAD_COUNT} threads.`,
  ];
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)];
}

function spread({ median, least, most }: Peak): string {
  return `${grouped(median)} (${grouped(least)}–${grouped(most)})`;
}

function perCycle({ median }: Peak, clock: Peak): string {
  return (median / clock.median / THREAD_COUNT).toFixed(0);
}

function milliseconds(value: number): string {
  return value.toFixed(value < 10 ? 3 : 1);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

/** Formats digits in groups of three, with a decimal for small numbers. */
function grouped(value: number): string {
  if (value < 100) return value.toFixed(1);
  return Math.round(value).toLocaleString('en').replaceAll(',', ' ');
}
