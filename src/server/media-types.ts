// The content types of bodies and replies, and content negotiation by Accept.

import { SagittaError } from '../common/errors.js';

export const JSON_TYPE = 'application/json';
export const NDJSON = 'application/x-ndjson';
export const ARROW_STREAM = 'application/vnd.apache.arrow.stream';
export const PARQUET = 'application/vnd.apache.parquet';

/** Content types of streamed bodies, whose length is not limited. */
export const STREAM_TYPES = [ARROW_STREAM, NDJSON] as const;
export type StreamType = (typeof STREAM_TYPES)[number];

export function notAcceptableError(
  offered: readonly string[],
  accept: string | undefined,
): SagittaError {
  const detail = `The reply is available as ${offered.join(' or ')}; Accept is ${accept}.`;
  return new SagittaError('not_acceptable', detail);
}

interface Range {
  readonly type: string;
  /** 0 to 1. */
  readonly weight: number;
}

/**
 * The offered type with the highest weight in Accept, the first one if several are equal; null if
 * none is acceptable. For each type the most specific range applies (RFC 9110, section 12.5.1).
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

/** An invalid weight counts as 1, since a reply is more useful than an error. */
function readRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((part) => part.startsWith('q='));
  const value = weight === undefined ? 1 : Number.parseFloat(weight.slice(2));
  return { type, weight: value >= 0 && value <= 1 ? value : 1 };
}
