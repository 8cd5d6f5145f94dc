// The vectors of a chunk of rows by their kinds, in the forms that the writers of replies take.

import { type Bitmap, createFullBitmap } from '../../common/bitmap.js';
import type { NamedMulti, NamedSparse } from '../../common/types.js';
import { UNNAMED } from '../../common/vectors.js';
import type { RowChunk, Scan } from '../../database/bulk/scan.js';

interface NamedChunk {
  readonly name: string;
  readonly vectors: Float32Array;
  readonly dimension: number;
  readonly presence: Bitmap;
}

export interface SplitVectors {
  readonly values: Float32Array | null;
  readonly named: readonly NamedChunk[];
  readonly multi: readonly NamedMulti[];
  readonly sparse: readonly NamedSparse[];
}

export function splitVectors({ vectors, count }: RowChunk): SplitVectors {
  const unnamed = vectors.find(({ name }) => name === UNNAMED);
  return {
    values: unnamed?.values ?? null,
    named: vectors.flatMap((column) => {
      if (column.kind !== 'dense' || column.name === UNNAMED) return [];
      const { name, dimension, values, presence } = column;
      return [{ name, dimension, vectors: values, presence: presence ?? createFullBitmap(count) }];
    }),
    multi: vectors.filter((column) => column.kind === 'multi'),
    sparse: vectors.filter((column) => column.kind === 'sparse'),
  };
}

export function splitFields({ fields }: Pick<Scan, 'fields'>) {
  const unnamed = fields.find(({ name }) => name === UNNAMED);
  return {
    dimension: unnamed?.kind === 'dense' ? unnamed.dimension : null,
    named: fields.flatMap((spec) => (spec.kind === 'dense' && spec.name !== UNNAMED ? [spec] : [])),
    multi: fields.flatMap((spec) => (spec.kind === 'multi' ? [spec] : [])),
    sparse: fields.flatMap(({ kind, name }) => (kind === 'sparse' ? [name] : [])),
  };
}
