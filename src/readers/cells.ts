// Interprets the values of cells: numbers, vectors written as text, and the JSON form of CSV cells.

import { bytesOfBase64 } from '../common/bytes.js';
import { splitNumbers } from '../common/number-list.js';
import { RowError, show } from './read-error.js';
import type { ReaderOptions } from './reader-options.js';

/** The notation of numbers in a file. */
export interface NumberStyle {
  readonly hasDecimalCommas: boolean;
  readonly isNanNull: boolean;
  /** Whether a quoted cell may be a number: a decimal comma has to be quoted between commas. */
  readonly mayBeQuoted: boolean;
}

export const PLAIN_NUMBERS: NumberStyle = {
  hasDecimalCommas: false,
  isNanNull: false,
  mayBeQuoted: false,
};

export function numberStyle(
  { decimal, isNanNull = false }: ReaderOptions,
  delimiter: string,
): NumberStyle {
  const hasDecimalCommas = decimal === ',';
  return { hasDecimalCommas, isNanNull, mayBeQuoted: hasDecimalCommas && delimiter === ',' };
}

const DECIMAL_HINT = '; if commas are decimal, use --decimal ,';

/** Throws RowError for text that is not a float32 number. */
export function floatsOfTexts(
  location: string,
  texts: readonly string[],
  style: NumberStyle,
): Float32Array {
  const values = new Float32Array(texts.length);
  for (let at = 0; at < values.length; at++) {
    const text = texts[at]!.trim();
    values[at] = numberOfText(text, style);
    if (!Number.isFinite(values[at])) throw notNumberError(location, at, text, style);
  }
  return values;
}

/** NaN for text that is not a number. */
function numberOfText(text: string, { hasDecimalCommas }: Pick<NumberStyle, 'hasDecimalCommas'>) {
  if (text === '') return Number.NaN;
  if (!hasDecimalCommas) return Number(text);
  // A point separates thousands where commas are decimal, so it is refused rather than guessed.
  return text.includes('.') ? Number.NaN : Number(text.replace(',', '.'));
}

function notNumberError(location: string, at: number, text: string, style: NumberStyle): RowError {
  const { hasDecimalCommas } = style;
  const expected = hasDecimalCommas ? ' with a decimal comma, as --decimal says' : '';
  const isOther =
    !hasDecimalCommas && Number.isFinite(numberOfText(text, { hasDecimalCommas: true }));
  const problem = `value ${at + 1} is ${show(text)}, expected a float32 number${expected}`;
  return new RowError(location, problem, isOther ? DECIMAL_HINT : '');
}

/** Parses a vector such as `[0.1, 0.2]`, `0.1 0.2` or `0.1;0.2`. Throws RowError. */
export function vectorOfText(location: string, text: string, style: NumberStyle): Float32Array {
  const { hasDecimalCommas } = style;
  const { texts, separators } = splitNumbers(text, hasDecimalCommas);
  if (separators.length <= 1) return floatsOfTexts(location, texts, style);
  const found = separators.map((each) => show(each)).join(' and ');
  const expected = hasDecimalCommas ? 'one separator and decimal commas' : 'one separator';
  throw new RowError(
    location,
    `found ${found} between the values of ${show(text)}, expected ${expected}`,
    hasDecimalCommas ? '' : DECIMAL_HINT,
  );
}

/** Decodes a vector from base64 of little-endian float32; undefined for any other text. */
export function vectorOfBase64(text: string): Float32Array | undefined {
  const bytes = bytesOfBase64(text);
  if (bytes === undefined || bytes.length % 4 !== 0) return undefined;
  // The copy is aligned; the decoded bytes need not be.
  return new Float32Array(new Uint8Array(bytes).buffer);
}

const NUMBERS = /^\s*[[({]?\s*[-+.\d][-+.\deE,;\s]*[\])}]?\s*$/;
/** Shorter text may be an ordinary word. */
const BASE64_CHARACTERS_MIN = 8;

/** The vector that a value of any format holds; undefined if it holds none. Used to detect vector columns. */
export function vectorOf(value: unknown): ArrayLike<number> | undefined {
  if (value instanceof Float32Array) return value;
  if (typeof value === 'string') {
    if (!NUMBERS.test(value)) {
      return value.length < BASE64_CHARACTERS_MIN ? undefined : vectorOfBase64(value);
    }
    const { texts, separators } = splitNumbers(value);
    return texts.length > 1 && separators.length === 1 ? texts.map(Number) : undefined;
  }
  if (!Array.isArray(value) || value.length === 0) return undefined;
  return value.every((item) => typeof item === 'number') ? value : undefined;
}

const JSON_SCALAR = /^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false)$/;
const COMMA_DECIMAL = /^-?(0|[1-9]\d*),\d+([eE][+-]?\d+)?$/;
const NAN = /^nan$/i;

/** The JSON form of a CSV cell: numbers, true and false as written, null if empty, otherwise a string. */
export function jsonOfText(text: string, isQuoted: boolean, style: NumberStyle): string {
  const { hasDecimalCommas, isNanNull, mayBeQuoted } = style;
  if (hasDecimalCommas && (!isQuoted || mayBeQuoted) && COMMA_DECIMAL.test(text)) {
    return text.replace(',', '.');
  }
  if (isQuoted) return JSON.stringify(text);
  if (text === '' || (isNanNull && NAN.test(text))) return 'null';
  // Where commas are decimal, a point may separate thousands.
  if (hasDecimalCommas && text.includes('.')) return JSON.stringify(text);
  const isScalar = JSON_SCALAR.test(text);
  // Metadata has no number for 1e400.
  const isInfinite = isScalar && Math.abs(Number(text)) === Infinity;
  return isScalar && !isInfinite ? text : JSON.stringify(text);
}
