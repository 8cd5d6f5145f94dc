// node dist/test/hostile/rot/main.js [--cases 5000] [--seed N] [--file KIND] [--first NUMBER] [--minutes N] [--store] [--verbose]
// --store: without the service, which is many times as fast. KIND: log, base, mark, segment, marker (of a backup).

import { readOptions, summarize } from '../harness/program.js';
import type { FileKind } from './damage.js';
import { runRot } from './rot.js';

const { seed, durationMs, values } = readOptions(Infinity, {
  cases: 5_000,
  file: undefined,
  first: 0,
  store: false,
  verbose: false,
});
console.log(`${values.cases} cases at most`);
let caseCount = 0;
const report = await runRot({
  caseCount: values.cases,
  seed,
  kind: values.file as FileKind | undefined,
  first: values.first,
  isStoreOnly: values.store,
  durationMs,
  onCase(number, what, { outcome, fault = '' }) {
    caseCount++;
    if (values.verbose || fault !== '') console.log(`${number}: ${outcome}: ${what}: ${fault}`);
  },
});
console.table(report.outcomes);
console.log(`${caseCount} cases`);
summarize(report.faults);
