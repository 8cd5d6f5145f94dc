// Writes the tables of docs/access.md: scopes, and which route asks for which. Run it after `npm run
// build`. What stands outside the two marked places is written by hand.
//
//   node scripts/access-docs.mjs            writes
//   node scripts/access-docs.mjs --check    fails when the file is not what would be written

import { readFileSync } from 'node:fs';
import { SCOPE_MEANINGS } from '../dist/src/common/access.js';
import { routesOf } from '../dist/src/server/app.js';
import { describeApp } from './described-app.mjs';
import { writeGenerated } from './generated.mjs';

const PATH = 'docs/access.md';

/** What a scope has to hold for. */
const PLACES = {
  path: 'the collection in the path',
  named: 'the collection named in the body or the query string',
  visible: 'each collection in the reply; others are omitted',
  service: 'the whole service',
};

const routes = await describeApp(routesOf);

const tables = {
  scopes: table(
    ['scope', 'allows to'],
    Object.entries(SCOPE_MEANINGS).map(([scope, meaning]) => [`\`${scope}\``, meaning]),
  ),
  routes: table(
    ['route', 'scope', 'scope applies to'],
    routes.map(({ method, path, access }) => [`\`${method} ${path}\``, ...needOf(access)]),
  ),
};

const found = readFileSync(new URL(`../${PATH}`, import.meta.url), 'utf8');
writeGenerated(PATH, Object.entries(tables).reduce(putTable, found));

function needOf(access) {
  if (access === 'public') return ['none', 'public: no credential required'];
  if (access === 'anyone') return ['any', 'any valid credential'];
  return [`\`${access.scope}\``, PLACES[access.on]];
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
  if (from === -1 || to === -1)
    throw new Error(`${PATH} has no place for ${name}: ${begin.trim()}`);
  return `${text.slice(0, from + begin.length)}\n${rows}\n\n${text.slice(to)}`;
}
