// Converts an Arrow stream to an Arrow file: the same messages between the magic bytes and a footer
// with their offsets. Only message headers are decoded.

import { MetadataVersion, type Schema } from 'apache-arrow';
import { FileBlock, Footer } from 'apache-arrow/ipc/metadata/file';
import { Message } from 'apache-arrow/ipc/metadata/message';
import { CliError } from '../failure.js';
import { ByteReader } from '../readers/byte-stream.js';

const MAGIC = Buffer.from('ARROW1');
const PREFIX_BYTES = 8;
const CONTINUATION = -1;
const ALIGNMENT = 8;

/** Throws CliError when the bytes are not an Arrow stream or end early. */
export async function* arrowFileOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = new ByteReader(stream);
  const batches: FileBlock[] = [];
  const dictionaries: FileBlock[] = [];
  let schema: Schema | undefined;
  const start = Buffer.concat([MAGIC, Buffer.alloc(ALIGNMENT - MAGIC.length)]);
  let at = start.length;
  yield start;
  while (true) {
    const prefix = await takeExactly(reader, PREFIX_BYTES);
    yield prefix;
    const [mark, metadataBytes] = int32sOf(prefix);
    if (mark !== CONTINUATION || metadataBytes! < 0) throw notArrow();
    if (metadataBytes === 0) break;
    const metadata = await takeExactly(reader, metadataBytes!);
    yield metadata;
    const message = Message.decode(new Uint8Array(metadata));
    const headBytes = PREFIX_BYTES + metadataBytes!;
    if (message.isSchema()) schema = message.header();
    else {
      const block = new FileBlock(headBytes, message.bodyLength, at);
      (message.isRecordBatch() ? batches : dictionaries).push(block);
    }
    at += headBytes + message.bodyLength;
    if (at % ALIGNMENT !== 0) throw notArrow();
    // A body may be large, so it is passed on in chunks.
    for (let left = message.bodyLength; left > 0; ) {
      const bytes = await reader.take(Math.min(left, 1 << 20));
      if (bytes.length === 0) throw notArrow();
      yield bytes;
      left -= bytes.length;
    }
  }
  if (schema === undefined) throw notArrow();
  const footer = Footer.encode(new Footer(schema, MetadataVersion.V5, batches, dictionaries));
  const footerBytes = Buffer.alloc(4);
  footerBytes.writeInt32LE(footer.byteLength);
  yield footer;
  yield footerBytes;
  yield MAGIC;
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
