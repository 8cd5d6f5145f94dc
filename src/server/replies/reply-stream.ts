// Sends a reply while it is produced, no faster than the client reads. An error before the first byte becomes a
// problem reply. A later error cuts the connection, so that no client mistakes a part for the whole; NDJSON first
// gets a line with the problem.

import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { SagittaError } from '../../common/errors.js';
import { abortAfterFlush, abortReply, slowReaderMsMax } from '../transport/connections.js';
import { ChunkCompressor, type Encoding } from '../wire/content-encodings.js';
import { NDJSON } from '../wire/media-types.js';
import { type ProblemContext, problemReply } from '../wire/problem.js';
import type { ReplyChunks } from '../wire/reply.js';

export interface ReplyStreamOptions {
  /** The Content-Type. */
  readonly type: string;
  readonly problemContext: ProblemContext;
  readonly stalledMsMax: number;
  /** Null for no encoding. */
  readonly encoding: Encoding | null;
  /** Records the error and returns the one for the client. */
  readonly onFailed: (error: unknown) => SagittaError;
}

export const isStream = (body: object | string): body is ReplyChunks =>
  typeof body === 'object' && Symbol.asyncIterator in body;

/** Waits for the first chunk and returns all chunks. Throws an error of the first chunk. */
export async function begin(chunks: ReplyChunks): Promise<ReplyChunks> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first = await iterator.next();
  return {
    async *[Symbol.asyncIterator]() {
      try {
        for (let next = first; next.done !== true; next = await iterator.next()) yield next.value;
      } finally {
        await iterator.return?.();
      }
    },
  };
}

/** Called after the status and headers have been set. */
export function toReadable(
  reply: FastifyReply,
  chunks: ReplyChunks,
  sending: ReplyStreamOptions,
): Readable {
  // At most one chunk ahead of the client.
  return Readable.from(flow(reply, chunks, sending), { objectMode: false, highWaterMark: 1 });
}

async function* flow(
  reply: FastifyReply,
  chunks: ReplyChunks,
  { type, problemContext, stalledMsMax, encoding, onFailed }: ReplyStreamOptions,
): AsyncGenerator<Uint8Array> {
  const { request, raw } = reply;
  const compressor = encoding === null ? null : new ChunkCompressor(encoding);
  const { replyReservation } = request;
  try {
    for await (const chunk of chunks) {
      const plain = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      if (plain.byteLength === 0) continue;
      const bytes = compressor === null ? plain : await compressor.add(plain);
      replyReservation.reserveUnchecked(
        request.principal.id,
        bytes.byteLength + raw.writableLength,
      );
      const timer = setTimeout(
        () => abortReply(raw),
        slowReaderMsMax(bytes.byteLength, stalledMsMax),
      );
      try {
        yield bytes;
      } finally {
        clearTimeout(timer);
      }
    }
    if (compressor !== null) yield await compressor.end();
  } catch (error) {
    const clientError = onFailed(error);
    if (type.startsWith(NDJSON)) {
      const line = Buffer.from(`{"error":${problemReply(clientError, problemContext).body}}\n`);
      yield compressor === null ? line : await compressor.add(line);
    }
    await abortAfterFlush(raw);
    throw clientError;
  } finally {
    compressor?.close();
    replyReservation.reserveUnchecked(request.principal.id, raw.writableLength);
  }
}
