// Content types of bodies and replies, and the negotiation of types and encodings.

import { SagittaError } from '../../common/errors.js';

export const JSON_TYPE = 'application/json';
export const HTML_TYPE = 'text/html';
export const NDJSON = 'application/x-ndjson';
export const ARROW_STREAM = 'application/vnd.apache.arrow.stream';
export const PARQUET = 'application/vnd.apache.parquet';
export const CSV = 'text/csv';

/** Formats of replies with rows, by their names in the API. The first is the default. */
export const FORMAT_NAMES = ['arrow', 'ndjson', 'parquet', 'csv'] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];

/** Content types of streamed bodies, which may have any length. */
export const STREAM_TYPES = [ARROW_STREAM, NDJSON] as const;
export type StreamType = (typeof STREAM_TYPES)[number];

export function notAcceptableError(
  offered: readonly string[],
  accept: string | undefined,
): SagittaError {
  const detail = `The reply is available as ${offered.join(' or ')}; Accept is ${accept}.`;
  return new SagittaError('not_acceptable', detail);
}

/** A type or an encoding that a client accepts. */
interface Range {
  readonly type: string;
  /** 0 to 1. */
  readonly weight: number;
}

/**
 * The offered type with the highest weight in Accept, the first of equal ones; null if none is acceptable. The most
 * specific range applies to each type (RFC 9110, section 12.5.1).
 */
export function chooseType(accept: string | undefined, offered: readonly string[]): string | null {
  if (accept === undefined || accept === '' || accept === '*/*') return offered[0]!;
  const ranges = accept.split(',').map(readRange);
  let best: string | null = null;
  let bestWeight = 0;
  for (const type of offered) {
    const names = [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*'];
    const range = names
      .map((name) => ranges.find((known) => known.type === name))
      .find((known) => known !== undefined);
    if (range !== undefined && range.weight > bestWeight) {
      best = type;
      bestWeight = range.weight;
    }
  }
  return best;
}

/**
 * The offered encoding with the highest weight in Accept-Encoding, the first of equal ones; null if the client prefers
 * no encoding or accepts none of those offered (RFC 9110, section 12.5.3).
 */
export function chooseEncoding<Encoding extends string>(
  accept: string | undefined,
  offered: readonly Encoding[],
): Encoding | null {
  if (accept === undefined || offered.length === 0) return null;
  const ranges = accept.split(',').map(readRange);
  const weightOf = (name: string) => ranges.find(({ type }) => type === name)?.weight;
  const otherWeight = weightOf('*') ?? 0;
  let best: Encoding | null = null;
  let bestWeight = 0;
  for (const encoding of offered) {
    const weight = weightOf(encoding) ?? otherWeight;
    if (weight > bestWeight) {
      best = encoding;
      bestWeight = weight;
    }
  }
  return (weightOf('identity') ?? 0) > bestWeight ? null : best;
}

/** Whether a client accepts only compressed replies: `gzip, identity;q=0`. */
export function refusesIdentity(accept: string | undefined): boolean {
  const ranges = (accept ?? '').split(',').map(readRange);
  const weightOf = (name: string) => ranges.find(({ type }) => type === name)?.weight;
  return (weightOf('identity') ?? weightOf('*')) === 0;
}

/** An invalid weight counts as 1, since any reply is more useful than an error. */
function readRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((part) => part.startsWith('q='));
  const value = weight === undefined ? 1 : Number.parseFloat(weight.slice(2));
  return { type, weight: value >= 0 && value <= 1 ? value : 1 };
}
