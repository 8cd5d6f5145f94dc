// A collection that is difficult to display: ids of 512 bytes, 4 096 dimensions, 40 metadata fields, nested values,
// right-to-left text, and text that looks like markup.

import type { Client, VectorInput } from '@sagitta/client';

export const EXTREME = 'extreme';
const DIMENSION = 4_096;
const ROWS = 60;

export async function createExtremeCollection(client: Client): Promise<void> {
  await client.collections.create({
    id: EXTREME,
    dimension: DIMENSION,
    description: `מאגר וקטורים ${'a long description '.repeat(12)}`,
    labels: { [`label-${'x'.repeat(40)}`]: 'value '.repeat(10).trim() },
  });
  await client
    .collection(EXTREME)
    .upsert(Array.from({ length: ROWS }, (_, row) => extremeRow(row)));
}

function extremeRow(row: number): VectorInput {
  const fields = Array.from({ length: 34 }, (_, field) => [`field_${field}`, row * field]);
  return {
    id: `${row}-${'long-id-'.repeat(63)}`.slice(0, 512),
    values: Float32Array.from({ length: DIMENSION }, (_, at) => Math.sin(row + 1 + at * (row % 7))),
    metadata: {
      ...Object.fromEntries(fields),
      arabic: 'نص من اليمين إلى اليسار',
      hebrew: 'טקסט מימין לשמאל',
      markup: '<img src="https://example.com/x.png" onerror="document.title = 1"><b>bold</b>',
      nested: { deep: { deeper: { deepest: [row, 'a', null, true] } }, 'key with spaces': row % 3 },
      'a.dotted.key': 'x'.repeat(2_000),
      emoji: '🧮📐🔭',
    },
  };
}
