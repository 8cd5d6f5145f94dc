// Generates the tables of docs/access.md: the scopes, and the scope that each route requires. The text
// outside the two marked sections is written by hand. Run `npm run build` first.
//
//   node scripts/docs/access.mjs            writes the file
//   node scripts/docs/access.mjs --check    fails if the file is out of date

import { readFileSync } from 'node:fs';
import { SCOPE_MEANINGS } from '../../dist/src/common/access.js';
import { routes } from './described-app.mjs';
import { writeGenerated } from './generated.mjs';

const PATH = 'docs/access.md';

/** What the scope must cover. */
const TARGETS = {
  path: 'the collection in the path',
  named: 'the collection named in the body or the query string',
  visible: 'each collection in the reply; others are omitted',
  service: 'the whole service',
};

const tables = {
  scopes: table(
    ['scope', 'allows to'],
    Object.entries(SCOPE_MEANINGS).map(([scope, meaning]) => [`\`${scope}\``, meaning]),
  ),
  routes: table(
    ['route', 'scope', 'scope applies to'],
    routes.map(({ method, path, access }) => [`\`${method} ${path}\``, ...requirementOf(access)]),
  ),
};

const found = readFileSync(new URL(`../../${PATH}`, import.meta.url), 'utf8');
writeGenerated(PATH, Object.entries(tables).reduce(putTable, found));

function requirementOf(access) {
  if (access === 'public') return ['none', 'public: no credential required'];
  if (access === 'anyone') return ['any', 'any valid credential'];
  return [`\`${access.scope}\``, TARGETS[access.on]];
}

function table(titles, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(titles), line(titles.map(() => '---')), ...rows.map(line)].join('\n');
}

function putTable(text, [name, rows]) {
  const begin = `<!-- generated: ${name} -->\n`;
  const end = '<!-- /generated -->';
  const from = text.indexOf(begin);
  const to = text.indexOf(end, from);
  if (from === -1 || to === -1) throw new Error(`${PATH} has no section ${begin.trim()}`);
  return `${text.slice(0, from + begin.length)}\n${rows}\n\n${text.slice(to)}`;
}
