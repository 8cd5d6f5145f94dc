// The filter tree: plain data that is sent to threads and stored in cursors as JSON. `parse.ts` creates
// and validates it.

import type { Operands, TestOperator } from './operators.js';

/** One condition on one path. */
export type FilterTest<Name extends TestOperator = TestOperator> = {
  [name in Name]: {
    readonly kind: 'test';
    readonly path: string;
    readonly operator: name;
    readonly operand: Operands[name];
  };
}[Name];

export type FilterNode =
  | FilterTest
  /** True for every document if it has no children. */
  | { readonly kind: 'and'; readonly children: readonly FilterNode[] }
  /** Has at least one child. */
  | { readonly kind: 'or'; readonly children: readonly FilterNode[] }
  | { readonly kind: 'not'; readonly child: FilterNode };

/** The paths that the filter reads, each once. */
export function filterPaths(node: FilterNode): string[] {
  return [...new Set(filterTests(node).map((test) => test.path))];
}

/** Every condition of the filter, in order. */
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
 * A cache key: filters with equal texts match the same documents. Filters that differ only in order and
 * repetition of their conditions have equal texts.
 */
export function filterText(node: FilterNode): string {
  switch (node.kind) {
    case 'test':
      return JSON.stringify([node.operator, node.path, node.operand]);
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
