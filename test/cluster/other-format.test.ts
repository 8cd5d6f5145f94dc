// Records and announcements of a format that this version does not read, as a node of another version would send them.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type ChainRecord,
  commitRecord,
  encodeChainRecord,
  encodeClaim,
} from '../../src/cluster/logs/chain-record.js';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { CLUSTER_FORMAT } from '../../src/cluster/logs/cluster-format.js';
import { LOG_START, type LogRecord } from '../../src/cluster/logs/collection-log.js';
import { MemoryStream } from '../../src/cluster/logs/memory-stream.js';
import { encodeOperations } from '../../src/cluster/logs/operations.js';
import { CATALOGUE } from '../../src/cluster/logs/store-entries.js';
import { NO_SIZES } from '../../src/cluster/members/announced-sizes.js';
import { Members, newMember } from '../../src/cluster/members/members.js';
import { silentLogger } from '../../src/common/logger.js';
import { batchOf } from '../database/harness.js';
import { idsIn, MemoryCluster, SHAPE, waitFor } from './memory-cluster.js';

const REFUSAL = {
  code: 'configuration_invalid',
  message:
    /^Position \d+ of .* has format 99, which version 9\.3\.0 of Sagitta wrote; this node, version \S+, reads format 3 and stops there\. Run versions with the same format on all nodes, or bring the data into a new cluster: docs\/cluster\.md, Update\.$/,
};

/** Appends a record that another version has written. */
async function appendOfOtherVersion(stream: MemoryStream): Promise<void> {
  let previous = LOG_START;
  const { signal } = new AbortController();
  for await (const record of new ChainedLog(stream).readToEnd(LOG_START, { signal })) {
    if (record.kind !== 'barrier') previous = record.link;
  }
  const record = {
    format: 99,
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

  it('does not let a node start that has applied everything in it', async () => {
    const cluster = await MemoryCluster.start(['n1']);
    try {
      const { kill } = await cluster.leader();
      await kill();
      const stream = cluster.network.streams.get(CATALOGUE)!;
      const other = new MemoryStream({ name: stream.name });
      await appendOfOtherVersion(other);
      cluster.network.streams.set(CATALOGUE, other);
      await assert.rejects(cluster.add('n1'), REFUSAL);
    } finally {
      await cluster.stop();
    }
  });
});

describe('an announcement of another format', () => {
  it('is ignored, and the node that sent it is named in the log', async () => {
    const cluster = await MemoryCluster.start(['n1']);
    try {
      const found: object[] = [];
      const warn = (details: object) => found.push(details);
      const logger = { ...silentLogger, warn };
      const { node } = await cluster.add('n2', { logger });
      const { self } = node;
      const bus = cluster.network.connect();
      for (const format of [99, 100]) {
        const stranger = { ...self, format, instance: 'n3/1', node: 'n3', version: '9.3.0' };
        bus.announce(Buffer.from(JSON.stringify(stranger)));
      }
      await waitFor('a warning', () => found.length > 0 || undefined);
      assert.deepEqual(found, [{ node: 'n3', version: '9.3.0', format: 99, expected: 3 }]);
      const names = () => node.present.map((member) => member.node).join();
      await waitFor('the other node', () => names() === 'n1,n2' || undefined);
    } finally {
      await cluster.stop();
    }
  });
});

describe('what nodes send each other', () => {
  // If this fails, nodes of the versions before and after the change misread each other: raise CLUSTER_FORMAT, too.
  it('has a format with a number', () => {
    const announced: string[] = [];
    const bus = {
      announce: (bytes: Uint8Array) => announced.push(Buffer.from(bytes).toString()),
      onAnnouncement() {},
    };
    const self = newMember({ instance: 'a', node: 'a', version: '1', zone: '', state: 'joining' });
    const members = new Members({ bus, self, timing: { announceMs: 60_000, silentMsMax: 60_000 } });
    members.start({
      measure: () => ({ position: 0, positions: {}, sizes: NO_SIZES, problems: [] }),
      onMember() {},
      onOtherFormat() {},
    });
    members.close();
    const fragment = encodeOperations([
      { kind: 'append', log: 'l', sequence: 1, record: Buffer.from('record') },
      { kind: 'put', key: ['a', 'b'], value: Buffer.from('value') },
      { kind: 'remove', key: ['a', 'b'] },
      { kind: 'trim', log: 'l', throughSequence: 1 },
    ]);
    const commit = {
      firstSequence: 1,
      lastSequence: 1,
      fragments: [{ shard: 0, bytes: fragment }],
      summary: Buffer.from('summary'),
    };
    const header = { epoch: 1, id: 'i', previous: LOG_START };
    const record = encodeChainRecord(commitRecord(commit, [[fragment]], header));
    const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');
    const sent = {
      announcement: Object.keys(JSON.parse(announced[0]!)).join(),
      claim: text(encodeClaim({ epoch: 1, owner: 'a/1' })),
      fragment: text(fragment),
      // Without the digest of the record, which depends on the version.
      record: text(record.subarray(4, -32)).replace(/"version":"[^"]*"/, '"version":""'),
    };
    assert.deepEqual(
      { format: CLUSTER_FORMAT, ...sent },
      {
        format: 3,
        announcement:
          'format,instance,node,version,zone,state,url,epoch,collectionCount,takeOverCounts,position,canStore,positions,joined,sizes,problems,clockMs',
        claim: '{"epoch":1,"owner":"a/1"}',
        fragment:
          '\u00bc\0\0\0[{"kind":"append","log":"l","sequence":1,"byteCount":6},{"kind":"put","key":["a","b"],"byteCount":5},{"kind":"remove","key":["a","b"]},{"kind":"trim","log":"l","throughSequence":1}]       recordvalue',
        record:
          '{"format":3,"version":"","kind":"commit","epoch":1,"id":"i","previous":{"position":0,"digest":""},"firstSequence":1,"lastSequence":1,"fragments":[{"shard":0,"byteCount":203,"messageCount":1,"digest":"bec0064a1264c6ab769cec4d42d27207ee3410ede52220162db2a1fed5ba280b"}]}summary',
      },
    );
  });
});
