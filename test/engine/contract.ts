// Runs the contract of engines (src/tools/selftest/contract.ts) as tests, one per case and engine. A quick test
// file runs the quick cases of an engine; a CI test file runs the rest, or all cases if there is no quick one.

import { after, before, describe, it } from 'node:test';
import type { Engine } from '../../src/engine/core/engine.js';
import { CONTRACT } from '../../src/tools/selftest/contract.js';
import { type ContractCase, createContext } from '../../src/tools/selftest/contract-case.js';
import { SEED } from './blocks.js';

export type ContractPart = 'quick' | 'rest' | 'all';

const PARTS = {
  quick: ({ isQuick = false }) => isQuick,
  rest: ({ isQuick = false }) => !isQuick,
  all: () => true,
} satisfies Record<ContractPart, (each: ContractCase) => boolean>;

export function engineContract(
  name: string,
  part: ContractPart,
  create: () => Promise<Engine>,
): void {
  describe(`the ${name} engine`, () => {
    let engine: Engine;
    before(async () => {
      console.log(`SAGITTA_TEST_SEED=${SEED}`);
      engine = await create();
    });
    after(() => engine.close());

    for (const { name: sentence, run } of CONTRACT.filter(PARTS[part])) {
      it(sentence, () => run(createContext(engine, name, SEED)));
    }
  });
}
