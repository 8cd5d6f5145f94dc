// Records of a format that this version does not read, as a node of another version would write them.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ChainRecord, encodeChainRecord } from '../../src/cluster/logs/chain-record.js';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { LOG_START, type LogRecord } from '../../src/cluster/logs/collection-log.js';
import { MemoryStream } from '../../src/cluster/logs/memory-stream.js';
import { CATALOGUE } from '../../src/cluster/logs/store-entries.js';
import { batchOf } from '../database/harness.js';
import { idsIn, MemoryCluster, SHAPE, waitFor } from './memory-cluster.js';

const REFUSAL = {
  code: 'configuration_invalid',
  message:
    /^Position \d+ of .* has format 2, which version 9\.3\.0 of Sagitta wrote; this node, version \S+, reads format 1 and stops there\. Run the same version on all nodes\.$/,
};

/** Appends a record that another version has written. */
async function appendOfOtherVersion(stream: MemoryStream): Promise<void> {
  let previous = LOG_START;
  const { signal } = new AbortController();
  for await (const record of new ChainedLog(stream).readToEnd(LOG_START, { signal })) {
    if (record.kind !== 'barrier') previous = record.link;
  }
  const record = {
    format: 2,
    version: '9.3.0',
    kind: 'epoch',
    epoch: previous.epoch + 1,
    id: 'x',
    owner: 'another',
    previous,
    summary: new Uint8Array(),
  } satisfies ChainRecord & { format: number; version: string };
  await stream.publish([{ channel: 'chain', bytes: encodeChainRecord(record) }], previous.position);
}

describe('a log with a record of another format', () => {
  it('is read up to there, and not written', async () => {
    const stream = new MemoryStream({ name: 'log' });
    const { signal } = new AbortController();
    const log = new ChainedLog(stream);
    const options = { after: LOG_START, onRecord() {}, signal };
    const writer = await log.takeOver({ ...options, owner: 'a' });
    await writer.append({
      firstSequence: 1,
      lastSequence: 1,
      fragments: [{ shard: 0, bytes: Buffer.from('fragment') }],
      summary: new Uint8Array(),
    });
    await appendOfOtherVersion(stream);
    const kinds: LogRecord['kind'][] = [];
    await assert.rejects(async () => {
      for await (const { kind } of log.readToEnd(LOG_START, { signal })) kinds.push(kind);
    }, REFUSAL);
    assert.deepEqual(kinds, ['epoch', 'commit']);
    await assert.rejects(log.takeOver({ ...options, owner: 'b' }), REFUSAL);
  });

  it('is not followed by nodes, which go on answering, and lets none start', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    try {
      const leader = await cluster.leader();
      await leader.database.createCollection({ id: 'c', ...SHAPE });
      const rows = [{ id: 'a', values: [1, 1], metadata: '{}' }];
      await leader.database.collection('c').write(batchOf(rows), { mode: 'upsert' });
      await cluster.settle();
      const follower = await cluster.follower();
      const [incarnation] = leader.database.incarnations as [string];
      await appendOfOtherVersion(cluster.network.streams.get(incarnation)!);
      await waitFor('a failure', () => follower.node.health.failedLogCount === 1 || undefined);
      assert.deepEqual(await idsIn(follower), ['a']);
      await appendOfOtherVersion(cluster.network.streams.get(CATALOGUE)!);
      await assert.rejects(cluster.add('n3'), REFUSAL);
    } finally {
      await cluster.stop();
    }
  });
});
