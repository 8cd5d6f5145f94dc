// Generates openapi.json from the routes and schemas of the built server. Run `npm run build` first.
//
//   node scripts/docs/openapi.mjs            writes the file
//   node scripts/docs/openapi.mjs --check    fails if the file is out of date

import { openApi } from './described-app.mjs';
import { writeGenerated } from './generated.mjs';

writeGenerated('openapi.json', `${JSON.stringify(openApi, null, 2)}\n`);
