// A reply that is made while it is sent, no faster than its client takes it. What fails before its
// first byte is a problem like any other; what fails later cuts the connection, so that nobody takes
// a part for the whole, and says why before that where the format has a place for it.

import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { SagittaError } from '../../common/errors.js';
import { NDJSON } from '../media-types.js';
import { type ProblemContext, problemReply } from '../problem.js';
import { abortAfterFlush, abortReply, slowReaderMsMax } from '../transport/connections.js';

/** Pieces of a body, each short enough to be held: some megabytes at most. */
export type ReplyPieces = AsyncIterable<Uint8Array | string>;

export interface SendingStream {
  /** Of the Content-Type. */
  readonly type: string;
  readonly place: ProblemContext;
  readonly stalledMsMax: number;
  /** Tells the log and the metrics, and gives the error that the client may see. */
  readonly onFailed: (error: unknown) => SagittaError;
}

export const isStream = (body: object | string): body is ReplyPieces =>
  typeof body === 'object' && Symbol.asyncIterator in body;

/** The pieces with the first of them already made: throws what keeps it from being made. */
export async function begin(pieces: ReplyPieces): Promise<ReplyPieces> {
  const iterator = pieces[Symbol.asyncIterator]();
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

/** For a reply whose head is set. */
export function toReadable(
  reply: FastifyReply,
  pieces: ReplyPieces,
  sending: SendingStream,
): Readable {
  // One piece ahead at most: what waits beyond is the client's to take first.
  return Readable.from(flow(reply, pieces, sending), { objectMode: false, highWaterMark: 1 });
}

async function* flow(
  reply: FastifyReply,
  pieces: ReplyPieces,
  { type, place, stalledMsMax, onFailed }: SendingStream,
): AsyncGenerator<Uint8Array> {
  const { request, raw } = reply;
  const { replyReservation: replyPlace } = request;
  try {
    for await (const piece of pieces) {
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
      if (bytes.byteLength === 0) continue;
      replyPlace.reserveUnchecked(request.principal.id, bytes.byteLength + raw.writableLength);
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
  } catch (error) {
    const clientError = onFailed(error);
    if (type.startsWith(NDJSON)) {
      yield Buffer.from(`{"error":${problemReply(clientError, place).body}}\n`);
    }
    await abortAfterFlush(raw);
    throw clientError;
  } finally {
    replyPlace.reserveUnchecked(request.principal.id, raw.writableLength);
  }
}
