// Runs the contract of engines (src/tools/selftest/contract.ts) as tests: each case is one, for each engine.

import { after, before, describe, it } from 'node:test';
import type { Engine } from '../../src/engine/core/engine.js';
import { CONTRACT, createContext } from '../../src/tools/selftest/contract.js';
import { SEED } from './blocks.js';

export function engineContract(name: string, create: () => Promise<Engine>): void {
  describe(`the ${name} engine`, () => {
    let engine: Engine;
    before(async () => {
      console.log(`SAGITTA_TEST_SEED=${SEED}`);
      engine = await create();
    });
    after(() => engine.close());

    for (const { name: sentence, run } of CONTRACT) {
      it(sentence, () => run(createContext(engine, name, SEED)));
    }
  });
}
