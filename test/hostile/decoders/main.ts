// node dist/test/hostile/decoders/main.js [--minutes 1] [--seed N] [--decoder PART_OF_A_NAME] [--case N]
// `--case` is the number of the first input, for one that was reported with the seed.

import { readOptions, summarize } from '../harness/program.js';
import { fuzzDecoders } from './fuzz-decoders.js';

const { seed, durationMs, values } = readOptions(1, { decoder: undefined, case: 0 });
const reports = await fuzzDecoders({
  seed,
  durationMs,
  only: values.decoder,
  firstCase: values.case,
});
for (const { name, caseCount, outcomes } of reports) {
  console.log(`${name}: ${caseCount} inputs, ${JSON.stringify(outcomes)}`);
}
summarize(reports.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`)));
