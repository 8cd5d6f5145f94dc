// Nodes of two versions in one cluster: the leader writes what all of them can read, and whoever cannot read a record
// stops and says which version it needs. There is one format so far; the second one is pretended.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeChainRecord } from '../../src/cluster/logs/chain-record.js';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { LOG_START, type LogRecord } from '../../src/cluster/logs/collection-log.js';
import { MemoryStream } from '../../src/cluster/logs/memory-stream.js';
import { KNOWN_FORMATS, type RecordFormats } from '../../src/cluster/logs/record-format.js';
import { FormatAgreement, readFormats } from '../../src/cluster/upkeep/format-agreement.js';
import { batchOf } from '../database/harness.js';
import { idsIn, MemoryCluster, SHAPE, type TestNode, waitFor } from './memory-cluster.js';

const OLD = { version: '1.0.0', formats: { oldest: 1, newest: 1 } } as const;
const NEW = { version: '1.3.0', formats: { oldest: 1, newest: 2 } } as const;

const formats = (
  { version, formats: readable }: typeof OLD | typeof NEW,
  written: number,
): RecordFormats => ({ readable, version, written: () => written });

const commit = {
  firstSequence: 1,
  lastSequence: 1,
  parts: [{ shard: 0, bytes: Buffer.from('part') }],
  summary: new Uint8Array(),
};

/** The formats of the records of a log, oldest first. */
function formatsIn(cluster: MemoryCluster, log: string): number[] {
  const found: number[] = [];
  cluster.network.streams.get(log)!.change((messages) => {
    for (const { channel, bytes } of messages) {
      if (channel === 'chain') found.push(decodeChainRecord(bytes, log).format ?? 1);
    }
    return messages;
  });
  return found;
}

async function write({ database }: TestNode, id: string): Promise<void> {
  const rows = [{ id, values: [1, 1], metadata: '{}' }];
  await database.collection('c').write(batchOf(rows), { mode: 'upsert' });
}

describe('a log with records of a later format', () => {
  it('is read up to there by an old version, which names the one that it needs', async () => {
    const stream = new MemoryStream({ name: 'log' });
    const { signal } = new AbortController();
    const before = await new ChainedLog(stream, { formats: formats(NEW, 1) }).takeOver({
      owner: 'a',
      after: LOG_START,
      onRecord() {},
      signal,
    });
    await before.append(commit);
    const later = new ChainedLog(stream, { formats: formats(NEW, 2) });
    const after = await later.takeOver({ owner: 'b', after: before.head, onRecord() {}, signal });
    await after.append(commit);
    const old = new ChainedLog(stream, { formats: formats(OLD, 1) });
    const kinds: LogRecord['kind'][] = [];
    const refusal = {
      code: 'configuration_invalid',
      message:
        /^Position \d+ of log has format 2, which version 1\.3\.0 of Sagitta wrote; this node, version 1\.0\.0, reads format 1 only\. .* Update this node to version 1\.3\.0 or later\.$/,
    };
    await assert.rejects(async () => {
      for await (const { kind } of old.readToEnd(LOG_START, { signal })) kinds.push(kind);
    }, refusal);
    assert.deepEqual(kinds, ['epoch', 'commit']);
    // It cannot write either.
    const options = { owner: 'c', after: LOG_START, onRecord() {}, signal };
    await assert.rejects(old.takeOver(options), refusal);
    let count = 0;
    for await (const _ of later.readToEnd(LOG_START, { signal })) count++;
    assert.equal(count, 4);
  });
});

describe('the agreement on a format', () => {
  it('is the newest that all nodes read that were heard of in the last hour', () => {
    let nowMs = 0;
    const agreement = new FormatAgreement({ oldest: 1, newest: 3 }, () => nowMs);
    assert.equal(agreement.written, 3);
    agreement.note({ node: 'b', formats: { oldest: 1, newest: 1 } });
    agreement.note({ node: 'c', formats: { oldest: 1, newest: 2 } });
    assert.equal(agreement.written, 1);
    agreement.note({ node: 'b', formats: { oldest: 1, newest: 3 } });
    assert.equal(agreement.written, 2);
    nowMs = 3_600_001;
    assert.equal(agreement.written, 3);
  });

  it('is never older than what the node itself reads', () => {
    const agreement = new FormatAgreement({ oldest: 2, newest: 3 }, () => 0);
    agreement.note({ node: 'b', formats: { oldest: 1, newest: 1 } });
    assert.equal(agreement.written, 2);
  });

  it('takes nodes that announce no formats for those of the first one', () => {
    assert.deepEqual(readFormats(undefined), { oldest: 1, newest: 1 });
    assert.deepEqual(readFormats({ oldest: 'x' }), { oldest: 1, newest: 1 });
    assert.deepEqual(readFormats({ oldest: 2, newest: 4 }), { oldest: 2, newest: 4 });
  });
});

describe('a cluster that is updated one node after another', () => {
  it('writes the old format until the last node is new, loses no write, and then refuses old nodes', async () => {
    const names = ['n1', 'n2', 'n3'];
    const cluster = new MemoryCluster();
    try {
      await Promise.all(names.map((name) => cluster.add(name, OLD)));
      const first = await cluster.leader();
      await first.database.createCollection({ id: 'c', ...SHAPE });
      const [incarnation] = first.database.incarnations as [string];
      const written: string[] = [];
      const writeOne = async () => {
        const id = `row-${written.length}`;
        await write(await cluster.ownerOf('c'), id);
        written.push(id);
      };
      await writeOne();
      for (const name of names) {
        await writeOne();
        await cluster.nodes.find((node) => node.name === name)!.stop();
        await writeOne();
        assert.ok(formatsIn(cluster, incarnation).every((format) => format === 1));
        await cluster.add(name, NEW);
      }
      assert.ok(formatsIn(cluster, incarnation).every((format) => format === 1));
      await waitFor('a record of the new format', async () => {
        await writeOne();
        return formatsIn(cluster, incarnation).at(-1) === 2 || undefined;
      });
      await cluster.settle();
      for (const node of cluster.nodes) {
        assert.deepEqual((await idsIn(node)).sort(), [...written].sort());
      }
      await assert.rejects(cluster.add('n4', OLD), {
        code: 'configuration_invalid',
        message: /has format 2, .* Update this node to version 1\.3\.0 or later/,
      });
    } finally {
      await cluster.stop();
    }
  });

  it('has old nodes that stop following where they cannot read, and go on answering', async () => {
    const cluster = await MemoryCluster.start(['n1', 'n2']);
    try {
      const leader = await cluster.leader();
      await leader.database.createCollection({ id: 'c', ...SHAPE });
      await write(leader, 'a');
      await cluster.settle();
      const follower = await cluster.follower();
      const [incarnation] = leader.database.incarnations as [string];
      // A new node that has not heard of the others.
      const log = new ChainedLog(cluster.network.streams.get(incarnation)!, {
        formats: formats(NEW, 2),
      });
      const { signal } = new AbortController();
      await log.takeOver({ owner: 'new', after: LOG_START, onRecord() {}, signal });
      await waitFor('a failure', () => follower.node.failedLogCount === 1 || undefined);
      assert.deepEqual(await idsIn(follower), ['a']);
      assert.equal(KNOWN_FORMATS.newest, 1);
    } finally {
      await cluster.stop();
    }
  });
});
