// Evaluates a filter on one JSON document: the definition that columns must agree with, used for paths
// without a column.

import { resolvePath } from '../common/metadata-path.js';
import type { Json, JsonObject } from '../common/types.js';
import type { FilterNode, FilterTest } from './filter-node.js';
import { OPERATORS, type TestOperator } from './operators.js';

export function matchesDocument(node: FilterNode, document: JsonObject): boolean {
  switch (node.kind) {
    case 'test':
      return matchesValue(node, resolvePath(document, node.path));
    case 'and':
      return node.children.every((child) => matchesDocument(child, document));
    case 'or':
      return node.children.some((child) => matchesDocument(child, document));
    case 'not':
      return !matchesDocument(node.child, document);
  }
}

function matchesValue<Name extends TestOperator>(
  test: FilterTest<Name>,
  value: Json | undefined,
): boolean {
  return OPERATORS[test.operator].matches(value, test.operand);
}
