// Selects the rows of a collection that pass a filter, for operations that read all of them once.

import type { FieldPath } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { JsonObject } from '../../common/types.js';
import type { Warning } from '../api/warning.js';
import type { FilterCache } from '../filters/filter-cache.js';
import type { Collection } from './collection.js';
import type { SegmentView, Snapshot } from './snapshot.js';
import { findUnknownPaths } from './unknown-paths.js';

interface PassingSelection {
  readonly snapshot: Snapshot;
  /** Views of all segments, with only the passing rows. */
  readonly views: readonly SegmentView[];
  /** Warnings about the filter. */
  readonly warnings: readonly Warning[] | undefined;
}

/**
 * Selects from a snapshot that is taken before the call returns. Throws `invalid_filter` with issues under the request
 * field at `path`, by default `filter`; rejects with the signal's reason.
 */
export async function selectPassing(
  collection: Collection,
  filter: JsonObject | undefined,
  { filters, limits }: { readonly filters: FilterCache; readonly limits: Limits },
  { signal, path }: { readonly signal?: AbortSignal | undefined; readonly path?: FieldPath } = {},
): Promise<PassingSelection> {
  const node = filter === undefined ? null : collection.parseFilter(filter, limits, path);
  const snapshot = collection.snapshot();
  const views = await filters.filter(snapshot.views, node, signal);
  const warnings = findUnknownPaths(collection, views, { filter: node });
  return { snapshot, views, warnings };
}
