// Streamed replies: their formats, the sequence of their snapshot, and the decoding of NDJSON rows.

import { asProblem, errorOfProblem, SagittaClientError } from './error.js';
import type { ReplyBody } from './reply-body.js';
import type { ParseReply } from './reply-json.js';
import type { Transport, TransportRequest } from './transport.js';

export const MEDIA_TYPES = {
  arrow: 'application/vnd.apache.arrow.stream',
  ndjson: 'application/x-ndjson',
  parquet: 'application/vnd.apache.parquet',
  csv: 'text/csv',
} as const;

export type StreamFormat = keyof typeof MEDIA_TYPES;

export interface StreamReply {
  /** Can be read once; leaving the loop, or `cancel()`, aborts the request. */
  readonly body: ReplyBody;
  /** Sequence of the snapshot, if the server sends it before the stream. */
  readonly sequence: number | undefined;
}

/** Sends a request and streams its reply. It may be retried until the reply begins. */
export async function openStream(
  transport: Transport,
  format: keyof typeof MEDIA_TYPES,
  request: Omit<TransportRequest, 'headers' | 'isIdempotent'>,
): Promise<StreamReply & { readonly headers: Headers }> {
  const headers = { accept: MEDIA_TYPES[format] };
  const reply = await transport.open({ ...request, headers, isIdempotent: true });
  return { ...reply, sequence: sequenceOf(reply.headers) };
}

export function sequenceOf(headers: Headers, name = 'sagitta-sequence'): number | undefined {
  const text = headers.get(name);
  return text === null ? undefined : Number(text);
}

/** The rows of a reply. Throws SagittaClientError: the error in the last line, or `unexpected_reply`. */
export async function* decodeLines<Row>(
  chunks: AsyncIterable<Uint8Array>,
  parse: ParseReply,
): AsyncGenerator<Row, void, undefined> {
  const decoder = new TextDecoder();
  /** The parts of an incomplete line, joined when it is complete. */
  let parts: string[] = [];
  for await (const chunk of chunks) {
    const lines = decoder.decode(chunk, { stream: true }).split('\n');
    if (lines.length > 1) {
      lines[0] = parts.join('') + lines[0];
      parts = [];
    }
    const rest = lines.pop()!;
    for (const line of lines) if (line !== '') yield parseLine<Row>(line, parse);
    if (rest !== '') parts.push(rest);
  }
  const last = parts.join('') + decoder.decode();
  if (last !== '') yield parseLine<Row>(last, parse);
}

function parseLine<Row>(line: string, parse: ParseReply): Row {
  let row: unknown;
  try {
    row = parse(line);
  } catch (cause) {
    const detail = `expected a line of JSON, found "${line.slice(0, 200)}"`;
    throw new SagittaClientError('unexpected_reply', detail, { cause });
  }
  const problem = asProblem((row as { error?: unknown } | null)?.error);
  if (problem !== undefined) throw errorOfProblem(problem);
  return row as Row;
}
