// Issues as short texts for assertions.

import type { ValidationIssue } from '../../src/common/errors.js';

/** `/path/of/a/field`, preceded by the row if there is one, or `?parameter`. */
export function placeOf({ location }: Pick<ValidationIssue, 'location'>): string {
  if (location.kind === 'parameter') return `?${location.name}`;
  const keys = location.row === undefined ? location.path : [location.row, ...location.path];
  return keys.map((key) => `/${key}`).join('');
}
