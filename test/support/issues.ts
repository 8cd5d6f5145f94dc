// Issues as short texts for assertions.

import type { ValidationIssue } from '../../src/common/errors.js';

/** `/path/of/a/field`, with the row first where the issue is about one, or `?parameter`. */
export function placeOf({ location }: Pick<ValidationIssue, 'location'>): string {
  if (location.kind === 'parameter') return `?${location.name}`;
  const keys = location.row === undefined ? location.path : [location.row, ...location.path];
  return keys.map((key) => `/${key}`).join('');
}
