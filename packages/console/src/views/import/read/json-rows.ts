// Rows of JSON: one object per line, or one array of objects. Reads text in pieces and keeps no more than
// one row of it.

import { parseExactJson } from '../../../../../../src/common/exact-json.js';
import { type SliceableFile, textsOf } from './file-bytes.js';
import {
  BLOCK_ROWS,
  ImportError,
  type RowSource,
  type SourceRow,
  TEXT_EXCERPT_MAX,
} from './row-source.js';

/** A row longer than this is a file of another format. */
const ROW_CHARACTERS_MAX = 64_000_000;

export function openJson(file: SliceableFile, isArray: boolean): RowSource {
  let position = 0;
  const texts = () =>
    textsOf(file, (at) => {
      position = at;
    });
  return {
    title: isArray ? 'JSON array' : 'NDJSON',
    rowCount: undefined,
    isText: false,
    columns: undefined,
    rows: (startRow) => blocksOf(isArray ? elementsOf(texts()) : linesOf(texts()), startRow),
    share: () => (file.size === 0 ? 1 : position / file.size),
  };
}

async function* blocksOf(
  texts: AsyncGenerator<string>,
  startRow: number,
): AsyncGenerator<readonly SourceRow[]> {
  let block: SourceRow[] = [];
  let row = 0;
  for await (const text of texts) {
    if (row++ < startRow) continue;
    block.push(parseRow(text));
    if (block.length < BLOCK_ROWS) continue;
    yield block;
    block = [];
  }
  if (block.length > 0) yield block;
}

function parseRow(text: string): SourceRow {
  const excerpt = text.slice(0, TEXT_EXCERPT_MAX);
  try {
    const value: unknown = parseExactJson(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? { kind: 'row', cells: value as Record<string, unknown> }
      : { kind: 'broken', problem: 'expected a JSON object', text: excerpt };
  } catch (error) {
    const problem = `expected JSON: ${error instanceof Error ? error.message : error}`;
    return { kind: 'broken', problem, text: excerpt };
  }
}

/** Lines that are not blank. */
async function* linesOf(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const text of texts) {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    checkLength(rest);
    for (const line of lines) if (line.trim() !== '') yield line;
  }
  if (rest.trim() !== '') yield rest;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);
const COMMA = 0x2c;

/** The texts of the elements of one array. */
async function* elementsOf(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let text = '';
  let start = 0;
  let depth = 0;
  let isInString = false;
  let isEscaped = false;
  for await (const piece of texts) {
    let at = text.length - start;
    text = text.slice(start) + piece;
    start = 0;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (isEscaped) isEscaped = false;
      else if (isInString) {
        isEscaped = code === BACKSLASH;
        isInString = code !== QUOTE;
      } else if (code === QUOTE) isInString = true;
      else if (OPENING.has(code)) {
        if (depth++ === 0) start = at + 1;
      } else if (CLOSING.has(code)) depth--;
      const isElementEnd = code === COMMA ? depth === 1 : CLOSING.has(code) && depth === 0;
      if (isInString || !isElementEnd) continue;
      const element = text.slice(start, at);
      start = at + 1;
      if (element.trim() !== '') yield element;
      if (depth === 0) return;
    }
    checkLength(text.slice(start));
  }
  throw new ImportError('the file ends within the JSON array; it may have been cut off');
}

function checkLength(rest: string): void {
  if (rest.length <= ROW_CHARACTERS_MAX) return;
  throw new ImportError(
    `found a row of more than ${ROW_CHARACTERS_MAX} characters; expected one JSON object per line, or an array of them`,
  );
}
