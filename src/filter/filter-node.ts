// The filter tree. It is plain data, which is sent to threads and stored in cursors as JSON. `parse.ts` builds and
// validates it.

import { stringifyExactJson } from '../common/exact-json.js';
import {
  type FILTER_OPERATORS,
  type FilterOperatorName,
  ID_PATH,
  type KindOf,
  TEXT_PATH,
} from '../common/filter-operators.js';
import type { JsonNumber } from '../common/types.js';
import { type Box, type Circle, type GeoOperator, isGeoOperator, type Polygon } from './geo.js';
import type { Instant } from './instant.js';

type Scalar = string | JsonNumber | boolean;
export type Value = Scalar | null;

/** The values from `from`, inclusive, to `until`, exclusive. */
export interface Interval<Bound> {
  /** Null for no lower bound. */
  readonly from: Bound | null;
  /** Null for no upper bound. */
  readonly until: Bound | null;
}

export const JSON_TYPES = ['null', 'boolean', 'number', 'string', 'array', 'object'] as const;
export type JsonType = (typeof JSON_TYPES)[number];

/** A filter that one element of an array must satisfy. */
export interface ElementFilter {
  /** Whether elements are documents, so that only objects match. Otherwise each is the value at ELEMENT_PATH. */
  readonly hasFields: boolean;
  readonly node: FilterNode;
}

/** The type of the parsed operand of each kind. Strings are well formed; numbers are finite and never -0. */
export interface ParsedOperands {
  readonly value: Value;
  readonly values: readonly Value[];
  readonly ordered: string | JsonNumber;
  readonly flag: boolean;
  readonly text: string;
  readonly like: string;
  readonly regex: string;
  readonly instants: Interval<Instant>;
  readonly counts: Interval<number>;
  /** Distinct and in the order of JSON_TYPES. */
  readonly types: readonly JsonType[];
  readonly elements: ElementFilter;
  readonly circle: Circle;
  readonly box: Box;
  readonly polygon: Polygon;
  /** Words that the text of a vector must contain; see `wordsPath`. */
  readonly words: string;
}

/** The operators of the tree. Operators that are the complement of another become `not`. */
export type TestOperator = {
  [name in FilterOperatorName]: (typeof FILTER_OPERATORS)[name] extends { complementOf: string }
    ? never
    : name;
}[FilterOperatorName];

export type Operands = { readonly [name in TestOperator]: ParsedOperands[KindOf<name>] };

/** One condition on one path. */
export type FilterTest<Name extends TestOperator = TestOperator> = {
  [name in Name]: {
    readonly kind: 'test';
    readonly path: string;
    readonly operator: name;
    readonly operand: Operands[name];
    /** Strings are case-folded before they are compared, as the operand already is. */
    readonly ignoresCase?: true;
  };
}[Name];

export type FilterNode =
  | FilterTest
  /** True for every document if it has no children. */
  | { readonly kind: 'and'; readonly children: readonly FilterNode[] }
  /** At least one child. */
  | { readonly kind: 'or'; readonly children: readonly FilterNode[] }
  | { readonly kind: 'not'; readonly child: FilterNode };

/** Returns a node that requires all children. */
export function allOf(children: readonly FilterNode[]): FilterNode {
  return children.length === 1 ? children[0]! : { kind: 'and', children };
}

/**
 * Returns the path of a condition on words. The caller of the evaluation adds a column of true and missing values
 * at this path, computed with its text index. It is no metadata path.
 */
export function wordsPath(words: string): string {
  return `${TEXT_PATH}:${words}`;
}

/** Whether the filter has a condition on words. */
export function hasWordsTest(node: FilterNode): boolean {
  return filterTests(node).some(({ operator }) => operator === '$match');
}

/** The path of an element in an `ElementFilter` without fields. */
export const ELEMENT_PATH = '';

/** Returns the distinct metadata paths that the filter reads. */
export function filterPaths(node: FilterNode): string[] {
  return [...new Set(filterTests(node).flatMap(testPaths))];
}

/** Returns the metadata paths that a condition reads; for a point those of its two coordinates. */
export function testPaths(test: FilterTest): string[] {
  if (test.path === ID_PATH) return [];
  return isGeoTest(test) ? [`${test.path}.lat`, `${test.path}.lon`] : [test.path];
}

export function isGeoTest(test: FilterTest): test is FilterTest<GeoOperator> {
  return isGeoOperator(test.operator);
}

/** Returns every condition of the filter, in order. `$elem_match` counts as one. */
export function filterTests(node: FilterNode): FilterTest[] {
  switch (node.kind) {
    case 'test':
      return [node];
    case 'not':
      return filterTests(node.child);
    case 'and':
    case 'or':
      return node.children.flatMap(filterTests);
  }
}

/**
 * Returns a cache key: filters with equal keys match the same documents. Filters whose conditions differ only in
 * order and repetition have equal keys.
 */
export function filterText(node: FilterNode): string {
  switch (node.kind) {
    case 'test':
      return stringifyExactJson([node.operator, node.path, node.operand, node.ignoresCase]);
    case 'not':
      return `!${filterText(node.child)}`;
    case 'and':
      return `&(${listText(node.children)})`;
    case 'or':
      return `|(${listText(node.children)})`;
  }
}

/** Order and repetition do not change what `and` and `or` match. */
function listText(children: readonly FilterNode[]): string {
  return [...new Set(children.map(filterText))].sort().join();
}
