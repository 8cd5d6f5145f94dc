// Reads the Arrow data that we stored: segment files and log records, each of them a single record batch in memory,
// without copies. The checks are the same as for data from clients; a failure is `data_corrupt`.

import { ELEMENTS } from '../../common/elements.js';
import { corrupt, readingStored } from './arrow-errors.js';
import { type ArrowColumn, openColumns } from './columns.js';
import type { EncodedBody } from './encoded-batch.js';
import {
  type Block,
  FILE_HEAD_BYTES,
  FILE_TAIL_BYTES,
  footerStart,
  readBlock,
  readFooter,
} from './file-reader.js';
import { CONTINUATION, END_OF_STREAM, PREFIX_BYTES } from './framing.js';
import { FILE_ALIGNMENT, type FieldToWrite } from './ipc-writer.js';
import { type ArrowMessage, type BodyShape, readMessageHead } from './message.js';
import { type ArrowField, type ArrowSchema, describeType } from './schema.js';

export interface StoredBatch {
  readonly schema: ArrowSchema;
  readonly rowCount: number;
  /** In the order of the schema's fields. Buffers are views of the given bytes. */
  readonly columns: readonly ArrowColumn[];
  /** Key-value metadata of the batch; empty in a file. */
  readonly metadata: ReadonlyMap<string, string>;
}

/** There is no limit, because everything is already in memory. */
const BYTES_MAX = Number.POSITIVE_INFINITY;

export interface StoredFile extends StoredBatch {
  /** Returns the attachments of these lengths, in the order of the file. Throws `data_corrupt`. */
  attachments(byteLengths: readonly number[]): Uint8Array[];
}

/**
 * Reads a file in place. Throws `data_corrupt`.
 * @param bytes start at a multiple of 8 in their buffer.
 */
export function decodeArrowFile(bytes: Uint8Array): StoredFile {
  return readingStored('an Arrow file', () => {
    if (bytes.length < FILE_HEAD_BYTES + FILE_TAIL_BYTES) {
      throw corrupt(`${bytes.length} bytes`, { expected: 'an Arrow file' });
    }
    const start = footerStart(bytes, bytes.subarray(-FILE_TAIL_BYTES), bytes.length);
    const footer = readFooter(bytes.subarray(start, bytes.length - FILE_TAIL_BYTES), start);
    const { schema, batches } = footer;
    if (batches.length !== 1)
      throw corrupt(`${batches.length} record batches`, { expected: '1 record batch' });
    const dictionaries = new Map<number, readonly EncodedBody[]>();
    for (const block of footer.dictionaries) {
      const message = readBlockAt(bytes, block);
      if (message.kind !== 'dictionary')
        throw corrupt(`a ${message.kind}`, { expected: 'a dictionary' });
      dictionaries.set(message.id, [plainBody(message.shape, bodyAt(bytes, block))]);
    }
    const message = readBlockAt(bytes, batches[0]!);
    if (message.kind !== 'batch')
      throw corrupt(`a ${message.kind}`, { expected: 'a record batch' });
    const { rowCount } = message.shape;
    const body = plainBody(message.shape, bodyAt(bytes, batches[0]!));
    const { fields } = schema;
    const columns = openColumns({ fields, rowCount, body, dictionaries }, BYTES_MAX);
    const bodyEnd = blockEnd(batches[0]!);
    return {
      schema,
      rowCount,
      columns,
      metadata: new Map(),
      attachments: (byteLengths) => cutAttachments(bytes.subarray(0, start), bodyEnd, byteLengths),
    };
  });
}

/** @param bytes the file up to its footer. */
function cutAttachments(
  bytes: Uint8Array,
  bodyEnd: number,
  byteLengths: readonly number[],
): Uint8Array[] {
  let end = bodyEnd + END_OF_STREAM.byteLength;
  return byteLengths.map((byteLength) => {
    const from = Math.ceil(end / FILE_ALIGNMENT) * FILE_ALIGNMENT;
    end = from + byteLength;
    if (!(Number.isSafeInteger(byteLength) && byteLength >= 0 && end <= bytes.length)) {
      throw corrupt(`${byteLength} bytes at byte ${from}, but the footer is at ${bytes.length}`);
    }
    return bytes.subarray(from, end);
  });
}

/**
 * Reads a stream in place. Throws `data_corrupt`.
 * @param bytes start at a multiple of 8 in their buffer.
 */
export function decodeArrowStream(bytes: Uint8Array): StoredBatch {
  return readingStored('an Arrow stream', () => {
    const schemaEnd = metadataEnd(bytes, 0);
    const schema = cachedSchema(bytes.subarray(0, schemaEnd));
    const bodyStart = metadataEnd(bytes, schemaEnd);
    const head = readMessageHead(bytes.subarray(schemaEnd + PREFIX_BYTES, bodyStart));
    const message = head.read();
    if (message.kind !== 'batch')
      throw corrupt(`a ${message.kind}`, { expected: 'a record batch' });
    const bodyEnd = bodyStart + head.bodyLength;
    if (bodyEnd > bytes.length) {
      throw corrupt(`a body of ${head.bodyLength} bytes at byte ${bodyStart} of ${bytes.length}`);
    }
    const { shape } = message;
    const body = plainBody(shape, bytes.subarray(bodyStart, bodyEnd));
    const { rowCount } = shape;
    const { fields } = schema;
    const columns = openColumns({ fields, rowCount, body, dictionaries: new Map() }, BYTES_MAX);
    return { schema, rowCount, columns, metadata: head.metadata() };
  });
}

/** Throws `data_corrupt` unless the fields have these names and types. */
export function expectFields(
  found: readonly ArrowField[],
  expected: readonly FieldToWrite[],
): void {
  const foundText = found.map((field) => `${field.name}: ${describeType(field)}`).join(', ');
  const expectedText = expected.map(({ name, type }) => `${name}: ${typeText(type)}`).join(', ');
  if (foundText !== expectedText) {
    throw corrupt(`the fields ${foundText}`, { expected: `the fields ${expectedText}` });
  }
}

/** Describes a type as `describeType` does. */
function typeText(type: FieldToWrite['type']): string {
  if (typeof type === 'string') return type;
  if ('vectorOf' in type) {
    return `fixed_size_list<${ELEMENTS[type.element ?? 'float32'].arrow}>[${type.vectorOf}]`;
  }
  if ('listOf' in type) return `list<${type.listOf}>`;
  if ('listOfNullable' in type) return `list<${type.listOfNullable}>`;
  return `list<fixed_size_list<float32>[${type.vectorsOf}]>`;
}

/** Schemas are cached because the records of a log repeat a few; comparing bytes is ten times faster than decoding. */
const knownSchemas = new Map<string, ArrowSchema>();
const KNOWN_SCHEMAS_MAX = 256;

/** @param bytes the whole message, including its prefix. */
function cachedSchema(bytes: Uint8Array): ArrowSchema {
  const key = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  let schema = knownSchemas.get(key);
  if (schema === undefined) {
    const message = readMessageHead(bytes.subarray(PREFIX_BYTES)).read();
    if (message.kind !== 'schema')
      throw corrupt(`a ${message.kind} first`, { expected: 'a schema' });
    ({ schema } = message);
    if (knownSchemas.size >= KNOWN_SCHEMAS_MAX) knownSchemas.clear();
    knownSchemas.set(key, schema);
  }
  return schema;
}

/** Returns where the metadata of the message at `start` ends, which is where its body begins. */
function metadataEnd(bytes: Uint8Array, start: number): number {
  if (start + PREFIX_BYTES > bytes.length) {
    throw corrupt(`a message at byte ${start} of ${bytes.length}`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, PREFIX_BYTES);
  const length = view.getInt32(4, true);
  const end = start + PREFIX_BYTES + length;
  if (view.getUint32(0, true) !== CONTINUATION || length <= 0 || end > bytes.length) {
    throw corrupt(`other bytes at byte ${start} of ${bytes.length}`, {
      expected: 'an Arrow message',
    });
  }
  return end;
}

/** Our writers do not compress. Without this check, a damaged length could demand any amount of memory. */
function plainBody(shape: BodyShape, bytes: Uint8Array): EncodedBody {
  if (shape.codec !== null) throw corrupt('a compressed body', { expected: 'a plain one' });
  return { shape, bytes };
}

function readBlockAt(bytes: Uint8Array, block: Block): ArrowMessage {
  return readBlock(block, bytes.subarray(block.offset, block.offset + block.metadataBytes));
}

function bodyAt(bytes: Uint8Array, block: Block): Uint8Array {
  return bytes.subarray(block.offset + block.metadataBytes, blockEnd(block));
}

function blockEnd({ offset, metadataBytes, bodyBytes }: Block): number {
  return offset + metadataBytes + bodyBytes;
}
