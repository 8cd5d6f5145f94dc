// The engine contract as a list of named cases, run by the tests and by `sagitta selftest`.

import { BLOCK_CASES, OWN_ANSWERS } from './block-cases.js';
import type { ContractCase } from './contract-case.js';
import { COUNT_CASES } from './count-cases.js';
import { MULTI_BLOCK_CASES } from './multi-block-cases.js';

/** The last case runs on an engine that has been through all the others. */
export const CONTRACT: readonly ContractCase[] = [
  ...BLOCK_CASES,
  ...MULTI_BLOCK_CASES,
  ...COUNT_CASES,
  OWN_ANSWERS,
];
