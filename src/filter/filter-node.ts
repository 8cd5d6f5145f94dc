// A parsed filter: plain data that crosses threads and goes into cursors as JSON. `parse.ts` makes
// it and has checked it; whoever reads it trusts it.

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
  /** True of everything without children. */
  | { readonly kind: 'and'; readonly children: readonly FilterNode[] }
  /** Never without children. */
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
