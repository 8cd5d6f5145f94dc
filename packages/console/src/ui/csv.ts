// Writes rows as CSV (RFC 4180).

import { stringifyExactJson } from '../../../../src/common/exact-json.js';

/** One line, including its line break. Absent values are empty; objects and arrays are JSON. */
export function csvLine(cells: readonly unknown[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

function csvCell(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : stringifyExactJson(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
