// Warnings about metadata paths that a request names but no vector has. A misspelt path is not an error, since
// metadata has no fixed schema, but the reply would look as if no vector passed.

import { cutName, nearestName } from '../../common/unknown-name.js';
import { type FilterNode, filterTests, testPaths } from '../../filter/filter-node.js';
import type { Warning } from '../api/warning.js';
import type { Collection } from './collection.js';
import type { SegmentView } from './snapshot.js';

/** The parts of requests that name metadata paths. */
interface PathNames {
  readonly filter: FilterNode | null;
  readonly groupBy?: string | undefined;
  readonly sort?: readonly { readonly field: string }[] | null | undefined;
  readonly facets?: readonly { readonly path: string }[] | undefined;
  readonly stats?: readonly { readonly path: string }[] | undefined;
}

/** Sort fields that are not metadata paths. */
const OTHER_FIELDS = new Set(['score', 'id', '$id']);

/**
 * Undefined if no path is unknown, if the collection has no vectors, and if a segment keeps some paths in JSON only,
 * since finding a path would then require reading all metadata.
 */
export function findUnknownPaths(
  collection: Collection,
  views: readonly SegmentView[],
  names: PathNames,
): readonly Warning[] | undefined {
  const named = namedPaths(names);
  if (named.length === 0) return undefined;
  const columns = views.map(({ metadata }) => metadata.columns);
  const declared = collection.definition.schema ?? {};
  const isKnown = (path: string) =>
    Object.hasOwn(declared, path) || columns.some((paths) => paths.has(path));
  const unknown = named.filter(([, path]) => !isKnown(path));
  if (unknown.length === 0 || views.length === 0) return undefined;
  if (views.some(({ metadata }) => !metadata.isComplete)) return undefined;
  const known = [
    ...new Set([...columns.flatMap((paths) => [...paths.keys()]), ...Object.keys(declared)]),
  ];
  return unknown.map(([member, path]) => {
    const nearest = nearestName(path, known);
    const meant = nearest === undefined ? '.' : `; did you mean ${JSON.stringify(nearest)}?`;
    const detail = `No vector has metadata at ${JSON.stringify(cutName(path))}${meant}`;
    return { code: 'unknown_path', in: member, path, detail };
  });
}

/** The paths with the member that names them, each pair once. */
function namedPaths({ filter, groupBy, sort, facets, stats }: PathNames) {
  if (filter === null && (groupBy ?? sort ?? facets ?? stats ?? null) === null) return [];
  const paths = {
    filter: filter === null ? [] : filterTests(filter).flatMap(pathsOfTest),
    group_by: groupBy === undefined ? [] : [groupBy],
    sort: (sort ?? []).map(({ field }) => field).filter((field) => !OTHER_FIELDS.has(field)),
    facets: (facets ?? []).map(({ path }) => path),
    stats: (stats ?? []).map(({ path }) => path),
  };
  return Object.entries(paths).flatMap(([member, named]) =>
    [...new Set(named)].map((path) => [member, path] as const),
  );
}

/** The path of a `$match` test stands for the text index, not for metadata. */
function pathsOfTest(test: ReturnType<typeof filterTests>[number]): string[] {
  return test.operator === '$match' ? [] : testPaths(test);
}
