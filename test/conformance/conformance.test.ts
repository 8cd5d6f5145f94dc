// Runs each case in cases/ once, over HTTP, except those that take seconds. other-ways.ci.test.ts runs these, and all
// cases with other prefixes and servers.

import { describeCases } from './describe-cases.js';
import { Servers } from './servers.js';

describeCases(new Servers(), { ways: 'quick' });
