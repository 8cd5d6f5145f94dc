// Generates openapi.json from the routes and schemas of the built server. Run `npm run build` first.
//
//   node scripts/docs/openapi.mjs            writes the file
//   node scripts/docs/openapi.mjs --check    fails if the file is out of date

import { describeApp } from './described-app.mjs';
import { writeGenerated } from './generated.mjs';

const reply = await describeApp((app) => app.inject('/openapi.json'));
if (reply.statusCode !== 200) throw new Error(`/openapi.json failed: ${reply.body}`);
writeGenerated('openapi.json', `${JSON.stringify(reply.json(), null, 2)}\n`);
