// Generates the tables of docs/access.md: the scopes, and the scope that each route requires. The text
// outside the two marked sections is written by hand. Run `npm run build` first.
//
//   node scripts/docs/access.mjs            writes the file
//   node scripts/docs/access.mjs --check    fails if the file is out of date

import { SCOPE_MEANINGS } from '../../dist/src/common/access.js';
import { routes } from './described-app.mjs';
import { table, writeSections } from './generated.mjs';

/** What the scope must cover. */
const TARGETS = {
  path: 'the collection in the path',
  named: 'the collection named in the body or the query string',
  visible: 'each collection in the reply; others are omitted',
  service: 'the whole service',
};

writeSections('docs/access.md', {
  scopes: table(
    ['scope', 'allows to'],
    Object.entries(SCOPE_MEANINGS).map(([scope, meaning]) => [`\`${scope}\``, meaning]),
  ),
  routes: table(
    ['route', 'scope', 'scope applies to'],
    routes.map(({ method, path, access }) => [`\`${method} ${path}\``, ...requirementOf(access)]),
  ),
});

function requirementOf(access) {
  if (access === 'public') return ['none', 'public: no credential required'];
  if (access === 'anyone') return ['any', 'any valid credential'];
  return [`\`${access.scope}\``, TARGETS[access.on]];
}
