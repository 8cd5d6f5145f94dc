// Generates the tables between the marks `<!-- generated: … -->`: scopes and routes in docs/access.md, filter operators
// in docs/api-guide.md and metrics in docs/metrics.md. Run `npm run build` first.
//
//   node scripts/docs/tables.mjs            writes the files
//   node scripts/docs/tables.mjs --check    fails if a file is out of date

import { readFileSync } from 'node:fs';
import { SCOPE_MEANINGS } from '../../dist/src/common/access.js';
import { FILTER_OPERATORS } from '../../dist/src/common/filter-operators.js';
import { METRIC_SECTIONS } from '../../dist/src/platform/metric-table.js';
import { routes } from './described-app.mjs';
import { writeGenerated } from './generated.mjs';

/** Descriptions of what a scope must cover. */
const TARGETS = {
  path: 'the collection in the path',
  named: 'the collection named in the body or the query string',
  visible: 'each collection in the reply; others are omitted',
  service: 'the whole service',
};

writeTables('docs/access.md', {
  scopes: table(
    ['scope', 'allows to'],
    Object.entries(SCOPE_MEANINGS).map(([scope, meaning]) => [code(scope), meaning]),
  ),
  routes: table(
    ['route', 'scope', 'scope applies to'],
    routes.map(({ method, path, access }) => [code(`${method} ${path}`), ...requirementOf(access)]),
  ),
});

writeTables('docs/api-guide.md', {
  'filter operators': table(
    ['operator', 'matches if the field'],
    Object.entries(FILTER_OPERATORS).map(([name, { meaning }]) => [code(name), meaning]),
  ),
});

writeTables(
  'docs/metrics.md',
  Object.fromEntries(
    Object.entries(METRIC_SECTIONS).map(([section, metrics]) => [
      section,
      table(['metric', 'type', 'labels', 'meaning'], Object.entries(metrics).map(describeMetric)),
    ]),
  ),
);

function requirementOf(access) {
  if (access === 'public') return ['none', 'public: no credential required'];
  if (access === 'anyone') return ['any', 'any valid credential'];
  return [code(access.scope), TARGETS[access.on]];
}

function describeMetric([name, { type, labels = {}, meaning }]) {
  return [code(name), type, Object.keys(labels).map(code).join(', '), meaning];
}

function code(text) {
  return `\`${text}\``;
}

/** Formats a Markdown table. */
function table(titles, rows) {
  const line = (cells) => `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`;
  return [line(titles), line(titles.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Replaces the tables between their marks, by name. The text outside the marks is written by hand. */
function writeTables(path, tables) {
  const found = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  const put = (text, [name, rows]) => {
    const begin = `<!-- generated: ${name} -->\n`;
    const from = text.indexOf(begin);
    const to = text.indexOf('<!-- /generated -->', from);
    if (from === -1 || to === -1)
      throw new Error(`Expected the mark ${begin.trim()} in ${path}; found none`);
    return `${text.slice(0, from + begin.length)}\n${rows}\n\n${text.slice(to)}`;
  };
  writeGenerated(path, Object.entries(tables).reduce(put, found));
}
