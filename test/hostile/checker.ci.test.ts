// A few seconds of many clients on few ids, with kills, pauses and clock jumps: all replies must fit one order of all
// writes. `checker/main.ts` runs for hours.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { runChecker } from './checker/checker.js';
import { type FaultName, findFaketime } from './checker/service.js';

it('all replies are explained by one order of the writes, whatever happens to the process', async (t) => {
  const seed = testSeed();
  t.diagnostic(`SAGITTA_TEST_SEED=${seed}`);
  const faults = new Set<FaultName>(['kill', 'stop']);
  if (findFaketime() === undefined) {
    t.diagnostic('clock jumps are skipped: libfaketime is not installed');
  } else {
    faults.add('clock');
  }
  const { faults: found, ...report } = await runChecker({
    clientCount: 16,
    durationMs: 12_000,
    seed,
    faults,
    retentionMs: 3_000,
    isEnough: ({ counters, marks }) =>
      marks.kills > 1 &&
      marks.checkpoints > 0 &&
      marks.compactions > 0 &&
      counters.unknownWrites > 0 &&
      counters.replays > 0 &&
      counters.streamsResumed > 0 &&
      Math.min(counters.writes, counters.reads) > 100,
  });
  t.diagnostic(JSON.stringify(report));
  assert.deepEqual(found, [], `seed ${seed}`);
  const { counters, marks } = report;
  assert.ok(marks.kills > 1, 'the service is killed');
  assert.ok(counters.unknownWrites > 0, 'kills meet writes');
  assert.ok(counters.replays > 0, 'writes are sent again');
  assert.ok(counters.streamsResumed > 0, 'streams are resumed');
  assert.ok(counters.writes > 100 && counters.reads > 100, 'there is load');
  assert.ok(marks.checkpoints > 0 && marks.segmentFilesMax > 0, 'segments are sealed and written');
  assert.ok(marks.compactions > 0, 'segments are compacted');
});
