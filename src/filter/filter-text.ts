// A filter as text, the same for filters that say the same in another order: what results are kept
// under. Not meant to be read back.

import type { FilterNode } from './filter-node.js';

/** Equal texts only for filters that match the same documents; the reverse is not promised. */
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

/** Neither order nor repetition changes what `and` and `or` match. */
function listText(children: readonly FilterNode[]): string {
  return [...new Set(children.map(filterText))].sort().join();
}
