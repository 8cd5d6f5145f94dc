// Writes openapi.json from the routes and schemas of the built service. Run it after `npm run
// build`.
//
//   node scripts/write-openapi.mjs            writes
//   node scripts/write-openapi.mjs --check    fails when the file is not what would be written

import { describeApp } from './described-app.mjs';
import { writeGenerated } from './generated.mjs';

const reply = await describeApp((app) => app.inject('/openapi.json'));
writeGenerated('openapi.json', `${JSON.stringify(reply.json(), null, 2)}\n`);
