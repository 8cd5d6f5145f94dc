// A batch as the bytes of an Arrow stream.

import { arrowStream } from '@sagitta/client/arrow';
import type { ConvertedRow } from './convert-row.js';

export async function encodeBatch(
  rows: readonly ConvertedRow[],
  dimension: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const values = new Float32Array(rows.length * dimension);
  rows.forEach((row, at) => {
    values.set(row.values, at * dimension);
  });
  const hasIds = rows[0]?.id !== undefined;
  const open = arrowStream({
    values,
    dimension,
    ...(hasIds && { ids: rows.map(({ id }) => id!) }),
    metadata: rows.map(({ metadata }) => metadata),
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of open()) chunks.push(chunk);
  return joined(chunks);
}

function joined(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(chunks.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
