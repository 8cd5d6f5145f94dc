// Reads columns of UUIDs, 16 bytes each, as text.

import { hexOf } from '../../common/bytes.js';
import type { ArrowColumn } from './columns.js';
import type { ArrowField } from './schema.js';
import type { Utf8Builder } from './utf8-builder.js';

export const UUID_CHARACTERS = 36;
/** The extension type that a schema declares for a column of 16 bytes. */
export const UUID_EXTENSION = 'arrow.uuid';
const UUID_BYTES = 16;

export function isUuid({ type, extension }: ArrowField): boolean {
  return (
    extension === UUID_EXTENSION &&
    type.kind === 'fixed_size_binary' &&
    type.byteWidth === UUID_BYTES
  );
}

/** Returns a function that writes the UUID of a row in its usual form. */
export function uuidWriter(column: ArrowColumn, out: Utf8Builder): (row: number) => void {
  const bytes = column.buffer(0, Uint8Array, column.length * UUID_BYTES);
  return (row) => {
    const hex = hexOf(bytes.subarray(row * UUID_BYTES, (row + 1) * UUID_BYTES));
    const groups = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
    out.ascii(`${groups.join('-')}-${hex.slice(20)}`);
  };
}
