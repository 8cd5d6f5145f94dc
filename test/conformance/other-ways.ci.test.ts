// Runs what conformance.test.ts leaves out of the cases in cases/: cases that restart a server or wait for seconds,
// paths without a prefix, and the other servers that a case names.

import { describeCases } from './describe-cases.js';
import { Servers } from './servers.js';

describeCases(new Servers(), { ways: 'rest' });
