// The beginning of files of words with their vectors: whether a file is one, and the line that word2vec and
// fastText begin with. A module of its own, since the format of every file is detected by it.

import { decodeLatin1, isUtf8 } from '../common/bytes.js';

const SPACE = 0x20;
const TAB = 0x09;
const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** Fewer numbers after a word may be other text. */
const NUMBERS_DETECTED = 3;

const HEADER = /^(\d{1,15}) (\d{1,7})[ \t]*\r?\n/;
/** As these programs write numbers. */
export const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/;

export interface Header {
  readonly rowCount: number;
  readonly dimension: number;
  /** Where the first word begins. */
  readonly byteCount: number;
}

/** Whether the first bytes are of words with vectors; a table of numbers alone has no words. */
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
 * Whether the vectors after a header are text, judging by the first one. Its word may have any character, also one that
 * is no UTF-8; numbers of four bytes are no digits with a decimal point or a sign.
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

/** Numbers of four bytes have control characters, or bytes that are no text. */
function hasOnlyText(head: Uint8Array): boolean {
  const isControl = (byte: number) =>
    byte < SPACE && byte !== TAB && byte !== NEWLINE && byte !== RETURN;
  if (head.some(isControl)) return false;
  // The head may end within a character.
  return [0, 1, 2, 3].some((cut) => isUtf8(head.subarray(0, head.length - cut)));
}
