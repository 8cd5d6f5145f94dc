// Converts an Arrow stream to an Arrow file, which has the same messages between the magic bytes and a footer with
// their offsets. Also reports the metadata of the messages. Only message headers are decoded.

import { MetadataVersion, type Schema } from 'apache-arrow';
import { FileBlock, Footer } from 'apache-arrow/ipc/metadata/file';
import { Message } from 'apache-arrow/ipc/metadata/message';
import { ByteReader } from '../../readers/byte-stream.js';
import { CliError } from '../terminal/failure.js';

const MAGIC = Buffer.from('ARROW1');
const PREFIX_BYTES = 8;
const CONTINUATION = -1;
const ALIGNMENT = 8;

/** Throws CliError when the bytes are not an Arrow stream or end early. */
export async function* arrowFileOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const batches: FileBlock[] = [];
  const dictionaries: FileBlock[] = [];
  let schema: Schema | undefined;
  const start = Buffer.concat([MAGIC, Buffer.alloc(ALIGNMENT - MAGIC.length)]);
  let at = start.length;
  yield start;
  for await (const { head, message, body } of messagesOf(stream)) {
    yield head;
    if (message === null) break;
    if (message.isSchema()) schema = message.header();
    else {
      const block = new FileBlock(head.length, message.bodyLength, at);
      (message.isRecordBatch() ? batches : dictionaries).push(block);
    }
    at += head.length + message.bodyLength;
    if (at % ALIGNMENT !== 0) throw notArrow();
    yield* body;
  }
  if (schema === undefined) throw notArrow();
  const footer = Footer.encode(new Footer(schema, MetadataVersion.V5, batches, dictionaries));
  const footerBytes = Buffer.alloc(4);
  footerBytes.writeInt32LE(footer.byteLength);
  yield footer;
  yield footerBytes;
  yield MAGIC;
}

/** Passes the bytes on unchanged; `onBatch` receives the metadata of each record batch. Throws CliError. */
export async function* watchBatches(
  stream: AsyncIterable<Uint8Array>,
  onBatch: (metadata: ReadonlyMap<string, string>) => void,
): AsyncGenerator<Uint8Array> {
  for await (const { head, message, body } of messagesOf(stream)) {
    yield head;
    yield* body;
    if (message?.isRecordBatch()) onBatch(message.metadata);
  }
}

interface StreamMessage {
  readonly head: Uint8Array;
  /** Null for the end-of-stream mark. */
  readonly message: Message | null;
  /** Must be read before the next message. */
  readonly body: AsyncIterable<Uint8Array>;
}

async function* messagesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<StreamMessage> {
  const reader = new ByteReader(stream);
  while (true) {
    const prefix = await takeExactly(reader, PREFIX_BYTES);
    const [mark, metadataBytes] = int32sOf(prefix);
    if (mark !== CONTINUATION || metadataBytes! < 0) throw notArrow();
    const metadata = await takeExactly(reader, metadataBytes!);
    const message = metadataBytes === 0 ? null : Message.decode(new Uint8Array(metadata));
    const head = Buffer.concat([prefix, metadata]);
    yield { head, message, body: takeInChunks(reader, message?.bodyLength ?? 0) };
    if (message === null) return;
  }
}

/** A body may be large, so it is passed on in chunks. */
async function* takeInChunks(reader: ByteReader, byteCount: number): AsyncGenerator<Uint8Array> {
  for (let left = byteCount; left > 0; ) {
    const bytes = await reader.take(Math.min(left, 1 << 20));
    if (bytes.length === 0) throw notArrow();
    yield bytes;
    left -= bytes.length;
  }
}

async function takeExactly(reader: ByteReader, count: number): Promise<Uint8Array> {
  const bytes = await reader.take(count);
  if (bytes.length < count) throw notArrow();
  return bytes;
}

function int32sOf(bytes: Uint8Array): [number, number] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return [view.getInt32(0, true), view.getInt32(4, true)];
}

function notArrow(): CliError {
  return new CliError(
    'expected an Arrow stream from the server; the reply is invalid or incomplete',
  );
}
