// NDJSON encoding and decoding in chunks. The server ends a stream that it cannot finish with a line
// `{"error": …}`, which is thrown.

import { asProblem, errorOfProblem, SagittaClientError } from './error.js';
import type { VectorInput } from './types.js';
import { wireVector } from './values.js';

/** Lines are gathered to chunks of this size; one chunk per line would cost more than the encoding. */
const CHUNK_CHARACTERS = 65_536;

/** One vector per line. */
export async function* encodeVectorLines(
  vectors: Iterable<VectorInput> | AsyncIterable<VectorInput>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  let text = '';
  for await (const vector of vectors) {
    text += `${JSON.stringify(wireVector(vector))}\n`;
    if (text.length < CHUNK_CHARACTERS) continue;
    yield encoder.encode(text);
    text = '';
  }
  if (text !== '') yield encoder.encode(text);
}

/** The rows of a reply. Throws SagittaClientError: the error of the last line, or `unexpected_reply`. */
export async function* decodeLines<Row>(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Row, void, undefined> {
  const decoder = new TextDecoder();
  /** Parts of an incomplete line, joined once when it is complete. */
  let parts: string[] = [];
  for await (const chunk of chunks) {
    const lines = decoder.decode(chunk, { stream: true }).split('\n');
    if (lines.length > 1) {
      lines[0] = parts.join('') + lines[0];
      parts = [];
    }
    const rest = lines.pop()!;
    for (const line of lines) if (line !== '') yield parseLine<Row>(line);
    if (rest !== '') parts.push(rest);
  }
  const last = parts.join('') + decoder.decode();
  if (last !== '') yield parseLine<Row>(last);
}

function parseLine<Row>(line: string): Row {
  let row: unknown;
  try {
    row = JSON.parse(line);
  } catch (cause) {
    const detail = `expected a line of JSON, found "${line.slice(0, 200)}"`;
    throw new SagittaClientError('unexpected_reply', detail, { cause });
  }
  const problem = asProblem((row as { error?: unknown } | null)?.error);
  if (problem !== undefined) throw errorOfProblem(problem);
  return row as Row;
}
