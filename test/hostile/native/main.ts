// node dist/test/hostile/native/main.js [--minutes 1] [--seed N] [--fuzzer json]
// Needs clang.

import { parseArgs } from 'node:util';
import { buildNativeFuzzers, NATIVE_FUZZERS, runNativeFuzzer } from './native-fuzzers.js';

const OUTPUT_SHOWN = 4_000;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(1 + (Date.now() % 1_000_000)) },
    fuzzer: { type: 'string' },
  },
});
const names = NATIVE_FUZZERS.filter(
  (name) => values.fuzzer === undefined || name === values.fuzzer,
);
const problem = buildNativeFuzzers(names);
if (problem !== null) throw new Error(problem);
console.log(`seed ${values.seed}`);
for (const name of names) {
  const seconds = Math.ceil((Number(values.minutes) * 60) / names.length);
  const report = await runNativeFuzzer(name, { seed: Number(values.seed), seconds });
  console.log(`${name}: ${report.runCount} inputs in ${seconds} s`);
  if (report.exitCode === 0) continue;
  console.log(`fault: ${report.output.slice(-OUTPUT_SHOWN)}\ninput: ${report.input}`);
  process.exitCode = 1;
}
