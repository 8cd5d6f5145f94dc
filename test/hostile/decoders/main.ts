// node dist/test/hostile/decoders/main.js [--minutes 1] [--seed N] [--decoder PART_OF_A_NAME] [--case N]
// `--case` is the number of the first input, for one that was reported with the seed.

import { parseArgs } from 'node:util';
import { fuzzDecoders } from './fuzz-decoders.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    decoder: { type: 'string' },
    case: { type: 'string', default: '0' },
  },
});
console.log(`seed ${values.seed}`);
const reports = await fuzzDecoders({
  seed: Number(values.seed),
  durationMs: Number(values.minutes) * 60_000,
  only: values.decoder,
  firstCase: Number(values.case),
});
for (const { name, caseCount, outcomes, faults } of reports) {
  console.log(`${name}: ${caseCount} inputs, ${JSON.stringify(outcomes)}`);
  for (const fault of faults) console.log(`fault: ${fault}`);
}
process.exitCode = reports.some(({ faults }) => faults.length > 0) ? 1 : 0;
