// How many vectors a selection names: what a delete would delete.

import type { Limits } from '../../common/limits.js';
import { parseFilter } from '../../filter/parse.js';
import type { DeleteSelection } from '../api.js';
import type { FilterCache } from '../query/filter-cache.js';
import type { Collection } from './collection.js';
import { countVisible } from './snapshot.js';

/** Throws `invalid_filter` and the bounds of filters. */
export async function countSelected(
  collection: Collection,
  selection: DeleteSelection,
  { filters, limits }: { readonly filters: FilterCache; readonly limits: Limits },
): Promise<number> {
  switch (selection.kind) {
    case 'all':
      return collection.rows.liveCount;
    case 'ids':
      return new Set(selection.ids.filter((id) => collection.find(id) !== undefined)).size;
    case 'filter': {
      const filter = parseFilter(selection.filter, limits);
      const { views: parts } = collection.snapshot();
      return countVisible(await filters.filter(parts, filter));
    }
  }
}
