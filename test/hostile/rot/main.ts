// node dist/test/hostile/rot/main.js [--cases 5000] [--seed N] [--file KIND] [--first NUMBER] [--minutes N] [--store] [--verbose]
// --store: without the service, which is many times as fast. KIND: tables, mark, segment, marker (of a backup), "lmdb lock".

import { parseArgs } from 'node:util';
import type { FileKind } from './damage.js';
import { runRot } from './rot.js';

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '5000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    file: { type: 'string' },
    first: { type: 'string', default: '0' },
    minutes: { type: 'string', default: 'Infinity' },
    store: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
});
console.log(`seed ${values.seed}, ${values.cases} cases`);
let caseCount = 0;
const report = await runRot({
  caseCount: Number(values.cases),
  seed: Number(values.seed),
  kind: values.file as FileKind | undefined,
  first: Number(values.first),
  isStoreOnly: values.store,
  durationMs: Number(values.minutes) * 60_000,
  onCase(number, what, { outcome, fault = '' }) {
    caseCount++;
    if (values.verbose || fault !== '') console.log(`${number}: ${outcome}: ${what}: ${fault}`);
  },
});
console.table(report.outcomes);
console.log(`${caseCount} cases, ${report.faults.length} faults`);
process.exitCode = report.faults.length > 0 ? 1 : 0;
