// Writes an Arrow IPC stream, batch by batch. Buffers of columns go out as they are, without a copy,
// so they may not change until they are sent.

import { Field, FixedSizeList, Float32, Int32, Int64, Schema, Utf8 } from 'apache-arrow';
import { Message } from 'apache-arrow/ipc/metadata/message';
import type { Utf8Column } from '../../common/types.js';
import { BodyWriter, Layout } from './body.js';
import { addMessage, END_OF_STREAM, STREAM_ALIGNMENT, toRecordBatch } from './ipc.js';

/** A column of a stream; none has nulls. */
export interface FieldToWrite {
  readonly name: string;
  readonly type: 'utf8' | 'int32' | 'int64' | 'float32' | { readonly vectorOf: number };
}

/** The values of one batch, as the type of their field asks. */
export type ColumnToWrite =
  | { readonly text: Utf8Column; readonly from: number }
  /** Row-major [rowCount, dimension]. */
  | { readonly vectors: Float32Array }
  | { readonly numbers: Int32Array | BigInt64Array | Float32Array };

const NUMBERS = { int32: Int32, int64: Int64, float32: Float32 } as const;

/** What a stream begins with. */
export function encodeSchema(
  fields: readonly FieldToWrite[],
  metadata: ReadonlyMap<string, string> = new Map(),
): Uint8Array {
  const schema = new Schema(fields.map(toField), new Map(metadata));
  const layout = new Layout();
  addMessage(layout, Message.from(schema), STREAM_ALIGNMENT);
  return layout.copyInto(new Uint8Array(layout.length));
}

/** A record batch, in chunks; columns in the order of the schema's fields. */
export function encodeBatch(rowCount: number, columns: readonly ColumnToWrite[]): Uint8Array[] {
  const body = new BodyWriter(STREAM_ALIGNMENT);
  for (const column of columns) {
    if ('text' in column) {
      body.utf8(column.text, column.from, rowCount);
      continue;
    }
    body.node(rowCount);
    body.noNulls();
    if ('vectors' in column) {
      body.node(column.vectors.length);
      body.noNulls();
      body.buffer(column.vectors);
    } else {
      body.buffer(column.numbers);
    }
  }
  const layout = new Layout();
  const message = Message.from(toRecordBatch(rowCount, body), body.layout.length);
  addMessage(layout, message, STREAM_ALIGNMENT);
  layout.append(body.layout);
  return layout.toChunks();
}

/** What a stream ends with; one without it was cut off. */
export function encodeEnd(): Uint8Array {
  return new Uint8Array(END_OF_STREAM.slice().buffer);
}

function toField({ name, type }: FieldToWrite): Field {
  if (type === 'utf8') return new Field(name, new Utf8(), false);
  if (typeof type === 'string') return new Field(name, new NUMBERS[type](), false);
  const element = new Field('item', new Float32(), false);
  return new Field(name, new FixedSizeList(type.vectorOf, element), false);
}
