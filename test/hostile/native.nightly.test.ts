// Short runs of the kernel fuzzers; `native/main.ts` is for long runs.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { buildNativeFuzzers, NATIVE_FUZZERS, runNativeFuzzer } from './native/native-fuzzers.js';

const SECONDS = 5;

const problem = buildNativeFuzzers(NATIVE_FUZZERS);
const isMissing = /no C\+\+ compiler found|libclang_rt/.test(problem ?? '');
const skip = isMissing && 'there is no clang with libFuzzer';

describe('the kernels under fuzzers', { skip }, () => {
  it('are compiled', () => assert.equal(problem, null));

  for (const name of NATIVE_FUZZERS) {
    it(`${name}: any bytes are read within bounds, with the right result`, async () => {
      const seed = 1 + testSeed();
      const report = await runNativeFuzzer(name, { seed, seconds: SECONDS });
      const place = `seed ${seed}, input ${report.input}\n${report.output.slice(-4_000)}`;
      assert.equal(report.exitCode, 0, place);
      assert.ok(report.runCount > 0, place);
    });
  }
});
