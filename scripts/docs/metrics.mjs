// Generates the tables of docs/metrics.md. Run `npm run build` first.
//
//   node scripts/docs/metrics.mjs            writes the file
//   node scripts/docs/metrics.mjs --check    fails if the file is out of date

import { METRIC_SECTIONS } from '../../dist/src/platform/metric-table.js';
import { table, writeSections } from './generated.mjs';

const tables = Object.entries(METRIC_SECTIONS).map(([section, metrics]) => [
  section,
  table(['metric', 'type', 'labels', 'meaning'], Object.entries(metrics).map(rowOf)),
]);

writeSections('docs/metrics.md', Object.fromEntries(tables));

function rowOf([name, { type, labels = {}, meaning }]) {
  const labelNames = Object.keys(labels).map((label) => `\`${label}\``);
  return [`\`${name}\``, type, labelNames.join(', '), meaning];
}
