// Runs each case in cases/ once, over HTTP. Other prefixes and servers: other-ways.ci.test.ts.

import { describeCases } from './describe-cases.js';
import { Servers } from './servers.js';

describeCases(new Servers());
