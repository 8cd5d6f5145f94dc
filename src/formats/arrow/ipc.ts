// Arrow IPC framing: streams of one batch, for the log, and files of one batch with dictionaries,
// for segments. One batch, because its buffers are then whole columns that memory can use in place.

import type { Schema } from 'apache-arrow';
import { MetadataVersion } from 'apache-arrow';
import { FileBlock, Footer } from 'apache-arrow/ipc/metadata/file';
import { DictionaryBatch, Message, RecordBatch } from 'apache-arrow/ipc/metadata/message';
import { BodyReader, type BodyWriter, corrupt, guarded, Layout } from './body.js';
import { checkFooter, checkMessage } from './flatbuffer-check.js';

/** Bodies and buffers of files start at multiples of this in the file, as Arrow recommends. */
export const FILE_ALIGNMENT = 64;
export const STREAM_ALIGNMENT = 8;

const MAGIC = new TextEncoder().encode('ARROW1');
const CONTINUATION = -1;
/** A message begins with the continuation mark and the length of its metadata. */
const PREFIX_BYTES = 8;
export const END_OF_STREAM = Int32Array.of(CONTINUATION, 0);
/** Behind the footer: its length and the magic. */
const TAIL_BYTES = 4 + MAGIC.byteLength;

export interface DictionaryToWrite {
  readonly id: number;
  readonly count: number;
  readonly body: BodyWriter;
}

/** The whole file; its large pieces are the columns as they are. */
export function layOutArrowFile(
  schema: Schema,
  rowCount: number,
  body: BodyWriter,
  dictionaries: readonly DictionaryToWrite[],
): Layout {
  const layout = new Layout();
  layout.add(MAGIC);
  layout.align(8);
  addMessage(layout, Message.from(schema), FILE_ALIGNMENT);
  const dictionaryBlocks = dictionaries.map(({ id, count, body: dictionary }) => {
    const batch = new DictionaryBatch(toRecordBatch(count, dictionary), id);
    return addBatch(layout, Message.from(batch, dictionary.layout.length), dictionary);
  });
  const message = Message.from(toRecordBatch(rowCount, body), body.layout.length);
  const batchBlock = addBatch(layout, message, body);
  layout.add(END_OF_STREAM);
  const footer = Footer.encode(
    new Footer(schema, MetadataVersion.V5, [batchBlock], dictionaryBlocks),
  );
  layout.add(footer);
  layout.add(Int32Array.of(footer.byteLength));
  layout.add(MAGIC);
  return layout;
}

export interface ArrowFile {
  readonly schema: Schema;
  readonly batch: BodyReader;
  readonly dictionaries: ReadonlyMap<number, BodyReader>;
}

/** Reads in place; `bytes` starts at a multiple of 8 in its buffer. Throws `data_corrupt`. */
export function decodeArrowFile(bytes: Uint8Array): ArrowFile {
  return guarded('an Arrow file', () => {
    const tail = bytes.subarray(-TAIL_BYTES);
    if (!startsWithMagic(bytes) || !startsWithMagic(tail.subarray(4))) {
      throw corrupt(`${bytes.length} bytes that are not an Arrow file`);
    }
    const footerEnd = bytes.length - TAIL_BYTES;
    const footerBytes = readInt32(tail, 0);
    if (footerBytes <= 0 || footerBytes > footerEnd) {
      throw corrupt(`a footer of ${footerBytes} bytes in a file of ${bytes.length}`);
    }
    const encodedFooter = copyOf(bytes, footerEnd - footerBytes, footerEnd);
    checkFooter(encodedFooter);
    const footer = Footer.decode(encodedFooter);
    if (footer.numRecordBatches !== 1) {
      throw corrupt(`${footer.numRecordBatches} record batches, expected 1`);
    }
    const read = ({ offset }: FileBlock) => readMessage(bytes, offset);
    const dictionaries = new Map<number, BodyReader>();
    for (const block of footer.dictionaryBatches()) {
      const { message, body } = read(block);
      if (!message.isDictionaryBatch()) throw corrupt('a message that is no dictionary');
      const { id, data } = message.header();
      dictionaries.set(id, new BodyReader(body, data));
    }
    const { message, body } = read(footer.getRecordBatch(0)!);
    if (!message.isRecordBatch()) throw corrupt('a message that is no record batch');
    return { schema: footer.schema, batch: new BodyReader(body, message.header()), dictionaries };
  });
}

const schemaMessages = new WeakMap<Schema, Uint8Array>();

/** A stream of one batch; `metadata` is the batch's. Ends at a multiple of 8. */
export function encodeArrowStream(
  schema: Schema,
  rowCount: number,
  body: BodyWriter,
  metadata: Map<string, string>,
): Layout {
  const layout = new Layout();
  let schemaMessage = schemaMessages.get(schema);
  if (schemaMessage === undefined) {
    const message = new Layout();
    addMessage(message, Message.from(schema), STREAM_ALIGNMENT);
    schemaMessage = message.copyInto(new Uint8Array(message.length));
    schemaMessages.set(schema, schemaMessage);
  }
  layout.add(schemaMessage);
  const batch = toRecordBatch(rowCount, body, metadata);
  addBatch(layout, Message.from(batch, body.layout.length), body, STREAM_ALIGNMENT);
  layout.add(END_OF_STREAM);
  return layout;
}

export interface ArrowStream {
  readonly schema: Schema;
  readonly batch: BodyReader;
  readonly metadata: ReadonlyMap<string, string>;
}

/** Reads in place; `bytes` starts at a multiple of 8 in its buffer. Throws `data_corrupt`. */
export function decodeArrowStream(bytes: Uint8Array): ArrowStream {
  return guarded('an Arrow stream', () => {
    const schemaEnd = messageEnd(bytes, 0);
    const { message, body } = readMessage(bytes, schemaEnd);
    if (!message.isRecordBatch()) throw corrupt('a message that is no record batch');
    return {
      schema: readSchema(bytes.subarray(0, schemaEnd)),
      batch: new BodyReader(body, message.header()),
      metadata: message.metadata,
    };
  });
}

/** The records of a log repeat a few schemas; comparing bytes is ten times faster than decoding. */
const knownSchemas = new Map<string, Schema>();
const KNOWN_SCHEMAS_MAX = 256;

function readSchema(bytes: Uint8Array): Schema {
  const key = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  let schema = knownSchemas.get(key);
  if (schema === undefined) {
    const { message } = readMessage(bytes, 0);
    if (!message.isSchema()) throw corrupt('a message that is no schema');
    schema = message.header();
    if (knownSchemas.size >= KNOWN_SCHEMAS_MAX) knownSchemas.clear();
    knownSchemas.set(key, schema);
  }
  return schema;
}

export function toRecordBatch(
  rowCount: number,
  body: BodyWriter,
  metadata = new Map<string, string>(),
): RecordBatch {
  return new RecordBatch(rowCount, body.nodes, body.regions, null, [], metadata);
}

function addBatch(
  layout: Layout,
  message: Message,
  body: BodyWriter,
  alignment = FILE_ALIGNMENT,
): FileBlock {
  const start = layout.length;
  addMessage(layout, message, alignment);
  const block = new FileBlock(layout.length - start, body.layout.length, start);
  layout.append(body.layout);
  return block;
}

/** Pads so that what follows starts at a multiple of `alignment`. */
export function addMessage(layout: Layout, message: Message, alignment: number): void {
  const metadata = Message.encode(message);
  const unpadded = layout.length + PREFIX_BYTES + metadata.byteLength;
  const padded = Math.ceil(unpadded / alignment) * alignment;
  layout.add(Int32Array.of(CONTINUATION, padded - layout.length - PREFIX_BYTES));
  layout.add(metadata);
  layout.align(alignment);
}

function messageEnd(bytes: Uint8Array, start: number): number {
  if (!(start >= 0 && start + PREFIX_BYTES <= bytes.length)) {
    throw corrupt(`a message at byte ${start} of ${bytes.length}`);
  }
  const mark = readInt32(bytes, start);
  const length = readInt32(bytes, start + 4);
  if (mark !== CONTINUATION || length <= 0 || start + PREFIX_BYTES + length > bytes.length) {
    throw corrupt(`no message of Arrow at byte ${start} of ${bytes.length}`);
  }
  return start + PREFIX_BYTES + length;
}

function readMessage(bytes: Uint8Array, start: number): { message: Message; body: Uint8Array } {
  const end = messageEnd(bytes, start);
  const metadata = copyOf(bytes, start + PREFIX_BYTES, end);
  checkMessage(metadata);
  const message = Message.decode(metadata);
  const { bodyLength } = message;
  if (!(bodyLength >= 0 && end + bodyLength <= bytes.length && end % 8 === 0)) {
    throw corrupt(`a body of ${bodyLength} bytes at byte ${end} of ${bytes.length}`);
  }
  return { message, body: bytes.subarray(end, end + bodyLength) };
}

/** Metadata is copied before it is decoded: names in it are read by what refuses shared memory. */
function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.subarray(start, end));
}

function readInt32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset + at, 4).getInt32(0, true);
}

function startsWithMagic(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => bytes[i] === byte);
}
