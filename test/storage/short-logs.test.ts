// The contract of stores with logs so short that bases are written, and files removed, all the time.

import { storeContract } from './contract.js';
import { diskHarnessOf } from './directories.js';

storeContract('disk with short logs', diskHarnessOf(3_000));
