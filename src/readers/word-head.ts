// The beginning of word-vector files: detects them and parses the header line of word2vec and fastText. A separate
// module, because format detection loads it for every file.

import { decodeLatin1, isUtf8 } from '../common/bytes.js';

const SPACE = 0x20;
const TAB = 0x09;
const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** With fewer numbers after the word, the line may be other text. */
const NUMBERS_DETECTED = 3;

const HEADER = /^(\d{1,15}) (\d{1,7})[ \t]*\r?\n/;
/** A number as GloVe, word2vec and fastText write it. */
export const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/;

export interface Header {
  readonly rowCount: number;
  readonly dimension: number;
  /** Length of the header line; the first word begins after it. */
  readonly byteCount: number;
}

/** The word-vector format that the first bytes belong to; undefined for other files, such as a table of numbers. */
export function wordFormatOf(head: Uint8Array): 'glove' | 'word2vec' | undefined {
  if (headerOf(head) !== undefined) return 'word2vec';
  const text = decodeLatin1(head);
  const end = text.indexOf('\n');
  const tokens = text.slice(0, end === -1 ? text.length : end).split(' ');
  // The head may end within a number.
  if (end === -1) tokens.pop();
  const [word = '', ...numbers] = tokens;
  const isVector = numbers.length >= NUMBERS_DETECTED && numbers.every((each) => NUMBER.test(each));
  return word !== '' && !NUMBER.test(word) && isVector ? 'glove' : undefined;
}

export function headerOf(head: Uint8Array): Header | undefined {
  const found = HEADER.exec(decodeLatin1(head));
  if (found === null) return undefined;
  const [line, rowCount, dimension] = found;
  return { rowCount: Number(rowCount), dimension: Number(dimension), byteCount: line.length };
}

/**
 * Whether the vectors after the header are text, judging by the first one. Its word may contain any bytes, even invalid
 * UTF-8; binary numbers do not look like digits with a decimal point or a sign.
 */
export function isText(head: Uint8Array, { byteCount, dimension }: Header): boolean {
  const rest = decodeLatin1(head, byteCount);
  const [line = ''] = rest.split('\n');
  const numbers = line
    .split(/[ \t\r]/)
    .slice(1)
    .filter((each) => NUMBER.test(each));
  if (numbers.length >= Math.min(dimension, NUMBERS_DETECTED)) return true;
  return hasOnlyText(head);
}

/** Binary numbers contain control characters or bytes that are not UTF-8. */
function hasOnlyText(head: Uint8Array): boolean {
  const isControl = (byte: number) =>
    byte < SPACE && byte !== TAB && byte !== NEWLINE && byte !== RETURN;
  if (head.some(isControl)) return false;
  // The head may end within a character.
  return [0, 1, 2, 3].some((cut) => isUtf8(head.subarray(0, head.length - cut)));
}
