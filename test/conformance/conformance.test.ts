// Runs the cases in cases/ over HTTP. `npm test` runs each case once, `npm run test:full` with both prefixes
// and on every server that the case names.

import { describeCases } from './describe-cases.js';
import { Servers } from './servers.js';

describeCases(new Servers());
