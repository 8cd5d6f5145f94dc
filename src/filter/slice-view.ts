// Slices the later rows of a view, for a filter whose result for the earlier rows is cached. Copies no array.

import type { MetadataColumn, MetadataView } from '../common/columns.js';
import type { Utf8Column } from '../common/types.js';

/**
 * Returns the rows from `from` on, with only the columns of `paths`.
 * @param from a multiple of 32.
 */
export function sliceView(
  view: MetadataView,
  from: number,
  paths: readonly string[],
): MetadataView {
  const columns = new Map<string, MetadataColumn>();
  for (const path of paths) {
    const column = view.columns.get(path);
    if (column !== undefined) columns.set(path, sliceColumn(column, from));
  }
  return {
    rowCount: view.rowCount - from,
    columns,
    isComplete: view.isComplete,
    ids: sliceStrings(view.ids, from),
    json: sliceStrings(view.json, from),
  };
}

function sliceStrings({ offsets, bytes }: Utf8Column, from: number): Utf8Column {
  return { offsets: offsets.subarray(from), bytes };
}

/** Slices neither dictionary nor elements, so that codes and element offsets stay valid. */
function sliceColumn(column: MetadataColumn, from: number): MetadataColumn {
  const { kinds, numbers, residues, codes, items } = column;
  return {
    ...column,
    kinds: kinds.subarray(from),
    numbers: numbers?.subarray(from) ?? null,
    residues: residues?.subarray(from) ?? null,
    codes: codes?.subarray(from) ?? null,
    items: items && { ...items, offsets: items.offsets.subarray(from) },
  };
}
