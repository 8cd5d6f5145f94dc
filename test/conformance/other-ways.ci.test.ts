// Runs the cases in cases/ in the ways that conformance.test.ts leaves out: those that restart a server or wait for
// seconds, the paths without prefix, and the other servers that a case names.

import { describeCases } from './describe-cases.js';
import { Servers } from './servers.js';

describeCases(new Servers(), { ways: 'rest' });
