// UUIDs, 16 bytes each, as the text that everybody writes for them.

import type { Column } from './columns.js';
import { UUID_BYTES } from './json-fields.js';

export const UUID_CHARACTERS = 36;

/** The column is of UUIDs. Gives the text of a row. */
export function uuidReader(column: Column): (row: number) => string {
  const bytes = column.buffer(0, Uint8Array, column.length * UUID_BYTES);
  return (row) => {
    const start = bytes.byteOffset + row * UUID_BYTES;
    const hex = Buffer.from(bytes.buffer, start, UUID_BYTES).toString('hex');
    const groups = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
    return `${groups.join('-')}-${hex.slice(20)}`;
  };
}
