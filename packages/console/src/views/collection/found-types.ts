// Describes the types that the server found at metadata paths: their shares, and declared paths that no
// vector has.

import type { FoundPath, TypeCounts } from '@sagitta/client';

export interface TypeShare {
  /** `string`, or `string[]` for arrays of strings only. */
  readonly type: string;
  /** The share of the vectors with this path, in (0, 1]. */
  readonly share: number;
}

/** The types at a path, most frequent first. */
export function typeSharesOf({ types, element_types: elements, count }: FoundPath): TypeShare[] {
  return presentTypes(types)
    .map((type) => ({
      type: type === 'array' ? arrayType(elements) : type,
      share: types[type] / count,
    }))
    .sort((a, b) => b.share - a.share);
}

function arrayType(elements: TypeCounts | undefined): string {
  const types = elements === undefined ? [] : presentTypes(elements);
  if (types.length === 0) return 'array';
  return types.length === 1 ? `${types[0]}[]` : `(${types.join(' | ')})[]`;
}

function presentTypes(counts: TypeCounts): (keyof TypeCounts)[] {
  return (Object.keys(counts) as (keyof TypeCounts)[]).filter((type) => counts[type] > 0);
}

/** Whether the path has numbers, so that stats are worth requesting. */
export function hasNumbers({ types, element_types: elements }: FoundPath): boolean {
  return types.number > 0 || (elements?.number ?? 0) > 0;
}

/** Whether the path has values that can be counted. */
export function hasValues({ distinct_count: count }: FoundPath): boolean {
  return count > 0;
}

/** Never rounds to 0 % or 100 %: 0.99999 → "99.9 %". */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (share <= 0 || share >= 1) return `${Math.round(percent)} %`;
  if (percent < 0.1) return '< 0.1 %';
  if (percent < 10 || percent > 99.9) return `${Math.floor(percent * 10) / 10} %`;
  return `${Math.min(99, Math.round(percent))} %`;
}

/** Declared paths that no vector has. */
export function declaredOnly(
  declared: Readonly<Record<string, string>>,
  found: readonly FoundPath[],
): readonly string[] {
  const paths = new Set(found.map(({ path }) => path));
  return Object.keys(declared).filter((path) => !paths.has(path));
}
