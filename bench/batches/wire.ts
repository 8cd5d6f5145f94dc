// The client side of the batch bench: Arrow streams written by apache-arrow, and requests over plain Node
// HTTP, so that the client costs as little as possible.

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import {
  Field,
  FixedSizeList,
  Float32,
  makeData,
  RecordBatch,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Utf8,
} from 'apache-arrow';
import type { ServerProcess } from '../../test/support/server-process.js';

export const ARROW = 'application/vnd.apache.arrow.stream';
export const NDJSON = 'application/x-ndjson';

/** Rows to send. */
export interface Rows {
  readonly dimension: number;
  readonly rowCount: number;
  /** Row-major [rowCount, dimension]. */
  readonly values: Float32Array;
  /** Undefined for queries. */
  readonly idOf?: (row: number) => string;
}

/** An IPC stream of batches of `batchRows` rows. */
export function arrowStream(rows: Rows, batchRows: number): Uint8Array {
  const { dimension, rowCount, values, idOf } = rows;
  const vectorType = new FixedSizeList(dimension, new Field('item', new Float32(), false));
  const fields = [
    ...(idOf === undefined ? [] : [new Field('id', new Utf8(), false)]),
    new Field(idOf === undefined ? 'vector' : 'values', vectorType, false),
  ];
  const schema = new Schema(fields);
  const writer = new RecordBatchStreamWriter();
  for (let from = 0; from < rowCount; from += batchRows) {
    const count = Math.min(batchRows, rowCount - from);
    const child = makeData({
      type: new Float32(),
      length: count * dimension,
      data: values.slice(from * dimension, (from + count) * dimension),
    });
    const vectors = makeData({ type: vectorType, length: count, child });
    const children = idOf === undefined ? [vectors] : [utf8Data(from, count, idOf), vectors];
    const struct = makeData({ type: new Struct(fields), length: count, children });
    writer.write(new RecordBatch(schema, struct));
  }
  writer.finish();
  return writer.toUint8Array(true);
}

function utf8Data(from: number, count: number, idOf: (row: number) => string) {
  const texts = Array.from({ length: count }, (_, i) => idOf(from + i));
  const valueOffsets = new Int32Array(count + 1);
  for (const [i, text] of texts.entries()) valueOffsets[i + 1] = valueOffsets[i]! + text.length;
  return makeData({
    type: new Utf8(),
    length: count,
    valueOffsets,
    data: Buffer.from(texts.join('')),
  });
}

interface TimedReply {
  readonly seconds: number;
  /** The time to the first byte of the body. */
  readonly firstByteSeconds: number;
  readonly byteCount: number;
  /** Empty unless `keepsBody`. */
  readonly body: Buffer;
}

const CHUNK_BYTES = 1 << 20;

/** Sends a body in chunks, with backpressure, and reads the reply at the same time. */
export async function sendRequest(
  url: string,
  options: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: Uint8Array | Iterable<Uint8Array>;
    readonly keepsBody?: boolean;
  },
): Promise<TimedReply> {
  const startedAt = performance.now();
  const outgoing = request(url, {
    method: options.method ?? 'POST',
    headers: options.headers ?? {},
  });
  const replying = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  const sending = send(outgoing, options.body ?? []);
  const [incoming] = await Promise.race([replying, sending.then(() => replying)]);
  let firstByteSeconds = 0;
  let byteCount = 0;
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    if (byteCount === 0) firstByteSeconds = (performance.now() - startedAt) / 1000;
    byteCount += chunk.length;
    if (options.keepsBody === true || incoming.statusCode !== 200) chunks.push(chunk);
  }
  await sending;
  const body = Buffer.concat(chunks);
  if (incoming.statusCode !== 200) throw new Error(`status ${incoming.statusCode}: ${body}`);
  return { seconds: (performance.now() - startedAt) / 1000, firstByteSeconds, byteCount, body };
}

async function send(
  outgoing: ReturnType<typeof request>,
  body: Uint8Array | Iterable<Uint8Array>,
): Promise<void> {
  for (const chunk of body instanceof Uint8Array ? chunksOf(body) : body) {
    if (!outgoing.write(chunk)) await once(outgoing, 'drain');
  }
  outgoing.end();
}

function* chunksOf(bytes: Uint8Array): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    yield bytes.subarray(at, at + CHUNK_BYTES);
  }
}

/** Returns the resident bytes of the server: now, and the peak since its start. */
export async function memoryOf({ child }: ServerProcess): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
  const kilobytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)![1]);
  return { now: kilobytes('VmRSS') * 1024, peak: kilobytes('VmHWM') * 1024 };
}
