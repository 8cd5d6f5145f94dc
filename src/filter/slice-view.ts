// The later rows of a view, for a filter that knows the earlier ones already: no array is copied.

import type { MetadataColumn, MetadataView } from '../common/columns.js';

/** The rows from `from` on, a multiple of 32, with only the columns of `paths`. */
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
  const { offsets, bytes } = view.json;
  return {
    rowCount: view.rowCount - from,
    columns,
    isComplete: view.isComplete,
    json: { offsets: offsets.subarray(from), bytes },
  };
}

/** Codes and offsets of elements mean what they meant: dictionary and elements stay whole. */
function sliceColumn(column: MetadataColumn, from: number): MetadataColumn {
  const { kinds, numbers, codes, items } = column;
  return {
    ...column,
    kinds: kinds.subarray(from),
    numbers: numbers?.subarray(from) ?? null,
    codes: codes?.subarray(from) ?? null,
    items: items && { ...items, offsets: items.offsets.subarray(from) },
  };
}
