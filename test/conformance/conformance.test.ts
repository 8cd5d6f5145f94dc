// Runs each case in cases/ once, over HTTP, except those that take seconds. These, other prefixes and other servers:
// other-ways.ci.test.ts.

import { describeCases } from './describe-cases.js';
import { Servers } from './servers.js';

describeCases(new Servers(), { ways: 'quick' });
