// node dist/test/hostile/native/main.js [--minutes 1] [--seed N] [--fuzzer json]
// Needs clang.

import { readOptions, summarize } from '../harness/program.js';
import { buildNativeFuzzers, NATIVE_FUZZERS, runNativeFuzzer } from './native-fuzzers.js';

const OUTPUT_SHOWN = 4_000;

const { seed, durationMs, values } = readOptions(1, { fuzzer: undefined });
const names = NATIVE_FUZZERS.filter(
  (name) => values.fuzzer === undefined || name === values.fuzzer,
);
const problem = buildNativeFuzzers(names);
if (problem !== null) throw new Error(problem);
const faults: string[] = [];
for (const name of names) {
  const seconds = Math.ceil(durationMs / 1_000 / names.length);
  const report = await runNativeFuzzer(name, { seed, seconds });
  console.log(`${name}: ${report.runCount} inputs in ${seconds} s`);
  if (report.exitCode === 0) continue;
  faults.push(`${report.output.slice(-OUTPUT_SHOWN)}\ninput: ${report.input}`);
}
summarize(faults);
