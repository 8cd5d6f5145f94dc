// Generates the table of filter operators in docs/api-guide.md. Run `npm run build` first.
//
//   node scripts/docs/filters.mjs            writes the file
//   node scripts/docs/filters.mjs --check    fails if the file is out of date

import { FILTER_OPERATORS } from '../../dist/src/common/filter-operators.js';
import { table, writeSections } from './generated.mjs';

const operators = Object.entries(FILTER_OPERATORS).map(([name, { meaning }]) => [name, meaning]);

writeSections('docs/api-guide.md', {
  'filter operators': table(
    ['operator', 'matches if the field'],
    operators.map(([name, meaning]) => [`\`${name}\``, meaning]),
  ),
});
