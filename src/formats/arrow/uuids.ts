// Columns of UUIDs, 16 bytes each, as text.

import type { Column } from './columns.js';
import type { ArrowField } from './schema.js';

export const UUID_CHARACTERS = 36;
/** The name of the extension type, which a schema gives to a column of 16 bytes. */
export const UUID_EXTENSION = 'arrow.uuid';
const UUID_BYTES = 16;

export function isUuid({ type, extension }: ArrowField): boolean {
  return (
    extension === UUID_EXTENSION &&
    type.kind === 'fixed_size_binary' &&
    type.byteWidth === UUID_BYTES
  );
}

/** The text of a row of a column of UUIDs. */
export function uuidReader(column: Column): (row: number) => string {
  const bytes = column.buffer(0, Uint8Array, column.length * UUID_BYTES);
  return (row) => {
    const start = bytes.byteOffset + row * UUID_BYTES;
    const hex = Buffer.from(bytes.buffer, start, UUID_BYTES).toString('hex');
    const groups = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
    return `${groups.join('-')}-${hex.slice(20)}`;
  };
}
