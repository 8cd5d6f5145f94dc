// CSV from the server's replies: from Arrow tables, and from NDJSON exports, whose numbers keep their
// spelling. Text is quoted, so that it can be distinguished from numbers.

import { DataType, Precision, type RecordBatch, RecordBatchReader } from 'apache-arrow';
import { type JsonMember, readUniqueMembers } from '../../formats/json/json-scanner.js';
import { linesOf } from '../readers/byte-stream.js';

/** Lines are gathered to chunks of this size, to save writes. */
const CHUNK_CHARACTERS = 1 << 18;

/** A header line with the column names, then a line per row. */
export async function* csvOfArrow(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* gatherChunks(
    (async function* () {
      const reader = await RecordBatchReader.from(stream);
      await reader.open();
      yield `${reader.schema.fields.map(({ name }) => quote(name)).join(',')}\n`;
      for await (const batch of reader) yield* linesOfBatch(batch);
    })(),
  );
}

function* linesOfBatch(batch: RecordBatch): Generator<string> {
  const columns = batch.schema.fields.map(({ type }, index) => ({
    type,
    values: batch.getChildAt(index)!,
  }));
  for (let row = 0; row < batch.numRows; row++) {
    yield `${columns.map(({ type, values }) => cellOf(values.get(row), type)).join(',')}\n`;
  }
}

/**
 * CSV of an NDJSON export; `names` are the columns: members, and as `vectors.<name>` those of a member. They are empty
 * in rows without them.
 */
export async function* csvOfVectors(
  stream: AsyncIterable<Uint8Array>,
  names: readonly string[],
): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder();
  yield* gatherChunks(
    (async function* () {
      yield `${names.join(',')}\n`;
      const paths = names.map((name) => name.split('.'));
      for await (const bytes of linesOf('the export', stream)) {
        if (bytes.length === 0) continue;
        const members = readUniqueMembers(decoder.decode(bytes));
        const cells = paths.map(([name, inner]) => {
          const whole = memberText(members, name!);
          const text =
            inner === undefined || whole === ''
              ? whole
              : memberText(readUniqueMembers(whole), inner);
          return quote(text.startsWith('"') ? (JSON.parse(text) as string) : text);
        });
        yield `${cells.join(',')}\n`;
      }
    })(),
  );
}

/** The JSON text of a member; empty for none. */
function memberText(members: readonly JsonMember[], name: string): string {
  return members.find((member) => member.name === name)?.text ?? '';
}

async function* gatherChunks(texts: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  let held = '';
  for await (const text of texts) {
    held += text;
    if (held.length < CHUNK_CHARACTERS) continue;
    yield Buffer.from(held);
    held = '';
  }
  if (held !== '') yield Buffer.from(held);
}

function cellOf(value: unknown, type: DataType): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return quote(value);
  if (!DataType.isList(type) && !DataType.isFixedSizeList(type)) return textOf(value, type);
  const elementType = type.children[0]!.type;
  const elements = Array.from(value as Iterable<unknown>, (each) => jsonOf(each, elementType));
  return quote(`[${elements.join(',')}]`);
}

function jsonOf(value: unknown, type: DataType): string {
  return value === null || typeof value === 'string' ? JSON.stringify(value) : textOf(value, type);
}

/** Of a number or a boolean. */
function textOf(value: unknown, type: DataType): string {
  if (Object.is(value, -0)) return '-0';
  const isFloat32 = DataType.isFloat(type) && type.precision === Precision.SINGLE;
  return isFloat32 ? shortText(value as number) : String(value);
}

function quote(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

/** The shortest decimal that rounds to the same float32; other numbers unchanged. */
function shortText(value: number): string {
  if (Math.fround(value) !== value || Number.isInteger(value)) return String(value);
  for (let digits = 6; digits < 9; digits++) {
    const text = Number(value.toPrecision(digits));
    if (Math.fround(text) === value) return String(text);
  }
  return String(Number(value.toPrecision(9)));
}
