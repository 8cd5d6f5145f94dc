// The archive of a log: records that a damaged or trimmed log lacks are read from it, and no others.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Archiver } from '../../src/cluster/archive/archiver.js';
import { LogArchive } from '../../src/cluster/archive/log-archive.js';
import { RecentMessages } from '../../src/cluster/archive/recent-messages.js';
import { RepairingLog } from '../../src/cluster/archive/repairing-log.js';
import { MemoryBlobs } from '../../src/cluster/blobs/memory-blobs.js';
import { SealedBlobs } from '../../src/cluster/blobs/sealed-blobs.js';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import {
  type CollectionLog,
  LOG_START,
  type LogLink,
  type LogRecord,
  type LogWriter,
} from '../../src/cluster/logs/collection-log.js';
import { MemoryStream } from '../../src/cluster/logs/memory-stream.js';
import type { StreamMessage } from '../../src/cluster/logs/message-stream.js';
import { silentLogger } from '../../src/common/logger.js';
import { NodeKeys } from '../../src/platform/node-keys.js';
import { commitOf, committed, outline, readAll, takeOver } from './log-contract.js';
import { changed, damages } from './log-damage.js';

const NEVER = new AbortController().signal;
const LOG = 'log';

class Harness {
  readonly stream = new MemoryStream({ name: LOG });
  readonly stored = new MemoryBlobs();
  readonly blobs = new SealedBlobs(this.stored, new NodeKeys([], 'test'));
  readonly log = new ChainedLog(this.stream, { messageBytesMax: 1_000 });
  readonly archive = new LogArchive(LOG, { blobs: this.blobs, logger: silentLogger });
  repairedCount = 0;
  readonly repairing: CollectionLog = new RepairingLog({
    log: this.log,
    archive: this.archive,
    logger: silentLogger,
    onRepaired: (count) => {
      this.repairedCount += count;
    },
  });
  readonly archiver = this.createArchiver();

  createArchiver(): Archiver {
    return new Archiver({
      blobs: this.blobs,
      openStream: () => this.stream,
      logger: silentLogger,
      readMsMax: 500,
    });
  }

  async readArchive(after: LogLink, shards?: readonly number[]): Promise<LogRecord[]> {
    const options = shards === undefined ? { signal: NEVER } : { signal: NEVER, shards };
    const records: LogRecord[] = [];
    for await (const record of this.archive.read(after, options)) records.push(record);
    return records;
  }

  async chunks(): Promise<string[]> {
    return (await this.archive.list()).map((name) => `${name.afterPosition}-${name.endPosition}`);
  }

  /** Damages a blob under its name, as a disk would. */
  async damageBlob(name: string): Promise<void> {
    const bytes = Uint8Array.from((await this.stored.get(name))!);
    bytes[bytes.length >> 1]! ^= 1;
    await this.stored.put(name, [bytes]);
  }
}

/** Compares bytes and not the classes of their arrays, since a clone of a Buffer is a Uint8Array. */
const plain = (records: readonly LogRecord[]) => structuredClone(records);

async function commit(writer: LogWriter, from: number, to: number): Promise<LogLink[]> {
  const links: LogLink[] = [];
  for (let sequence = from; sequence <= to; sequence++) {
    links.push(await committed(writer, commitOf(sequence, { 1: 100, 2: 2_500 })));
  }
  return links;
}

describe('the archive of a log', () => {
  it('contains the records byte by byte, with the messages of other nodes', async () => {
    const harness = new Harness();
    const { writer } = await takeOver(harness.log);
    await commit(writer, 1, 3);
    await harness.archiver.archive(LOG, writer.head, NEVER);
    const { writer: next } = await takeOver(harness.log, { owner: 'b', after: writer.head });
    await harness.log.barrier();
    await commit(next, 4, 5);
    await harness.archiver.archive(LOG, next.head, NEVER);
    assert.equal((await harness.chunks()).length, 2);
    const archived = await harness.readArchive(LOG_START);
    assert.deepEqual(plain(archived), plain(await readAll(harness.log)));
    assert.deepEqual(outline(archived), ['epoch 1 by a', 1, 2, 3, 'epoch 2 by b', 4, 5]);
    const some = await harness.readArchive(writer.head, [1]);
    assert.deepEqual(plain(some), plain(await readAll(harness.log, writer.head, [1])));
  });

  it('is the same when it is written from published messages, without reading the log', async () => {
    const harness = new Harness();
    let readCount = 0;
    const writing = new Archiver({
      blobs: harness.blobs,
      openStream: () => {
        readCount++;
        return harness.stream;
      },
      logger: silentLogger,
    });
    const log = new ChainedLog(harness.stream, {
      messageBytesMax: 50_000,
      onPublished: (messages, position) => writing.addPublished(LOG, messages, position),
    });
    const { writer } = await takeOver(log);
    await commit(writer, 1, 2);
    await writing.archive(LOG, writer.head, NEVER);
    const firstCount = readCount;
    const large = { 1: 5_000_000, 2: 2_500 };
    for (const sequence of [3, 4, 5]) await committed(writer, commitOf(sequence, large));
    await writing.archive(LOG, writer.head, NEVER);
    assert.equal(readCount, firstCount);
    const names = (await harness.archive.list()).map(({ name }) => name);
    assert.ok(names.length > 2, 'a chunk ends when it is large enough');
    const archived = await harness.readArchive(LOG_START);
    assert.deepEqual(plain(archived), plain(await readAll(harness.log)));
    // Between two commits, another process appends a message.
    await harness.log.barrier();
    await commit(writer, 6, 7);
    await writing.archive(LOG, writer.head, NEVER);
    assert.equal(readCount, firstCount + 1);
    assert.deepEqual(outline(await harness.readArchive(LOG_START)).at(-1), 7);
    // An archiver that reads everything writes the same bytes under the same names.
    const other = new Harness();
    const reading = new Archiver({
      blobs: other.blobs,
      openStream: () => harness.stream,
      logger: silentLogger,
    });
    const chunks = await harness.archive.list();
    let after = LOG_START;
    const records = (await readAll(harness.log)).filter((record) => record.kind !== 'barrier');
    for (const { endPosition, name } of chunks) {
      const { link } = records.find((record) => record.link.position === endPosition)!;
      await reading.archive(LOG, link, NEVER);
      assert.deepEqual(
        Buffer.from((await other.blobs.get(name))!),
        Buffer.from((await harness.blobs.get(name))!),
        `after ${after.position}`,
      );
      after = link;
    }
  });

  it('is written from the log when more has been published than is remembered', () => {
    const recent = new RecentMessages(10);
    const part = { channel: 0, bytes: new Uint8Array(4) } as const;
    recent.add('a', [part], 5);
    recent.add('b', [part, part], 2);
    assert.equal(recent.between('a', 4, 5), null);
    assert.deepEqual(
      recent.between('b', 0, 2)?.map(({ position }) => position),
      [1, 2],
    );
    recent.forget('b', 1);
    assert.equal(recent.between('b', 0, 2), null);
    assert.equal(recent.between('b', 1, 3), null);
    recent.add('b', [part], 3);
    assert.deepEqual(
      recent.between('b', 2, 3)?.map(({ position }) => position),
      [3],
    );
    recent.add('b', [part], 5);
    assert.equal(recent.between('b', 3, 5), null);
    recent.add('b', [part, part], 7);
    assert.equal(recent.between('b', 4, 7), null);
    assert.deepEqual(
      recent.between('b', 5, 7)?.map(({ position }) => position),
      [6, 7],
    );
  });

  it('is continued by another node where it ends, and writes nothing twice', async () => {
    const harness = new Harness();
    const { writer } = await takeOver(harness.log);
    const [first, second] = await commit(writer, 1, 2);
    await harness.archiver.archive(LOG, first!, NEVER);
    await harness.archiver.archive(LOG, first!, NEVER);
    await harness.createArchiver().archive(LOG, second!, NEVER);
    assert.deepEqual(await harness.chunks(), [
      `0-${first!.position}`,
      `${first!.position}-${second!.position}`,
    ]);
  });

  it('is not written from a damaged replica, and goes on once another one answers', async () => {
    const harness = new Harness();
    const { writer } = await takeOver(harness.log);
    await commit(writer, 1, 4);
    let whole: StreamMessage[] = [];
    harness.stream.change((messages) => {
      whole = messages;
      return changed(messages, ({ channel, position }) => channel === 1 && position > 6);
    });
    const { archiver } = harness;
    await assert.rejects(archiver.archive(LOG, writer.head, NEVER), { code: 'data_corrupt' });
    assert.deepEqual(await harness.chunks(), []);
    harness.stream.change(() => whole);
    await archiver.archive(LOG, writer.head, NEVER);
    assert.deepEqual(await harness.chunks(), [`0-${writer.head.position}`]);
  });

  it('does not wait for ever for a missing end', async () => {
    const harness = new Harness();
    const { writer } = await takeOver(harness.log);
    await commit(writer, 1, 4);
    harness.stream.change((messages) => messages.slice(0, -4));
    const archived = harness.archiver.archive(LOG, writer.head, NEVER);
    await assert.rejects(archived, { code: 'data_corrupt', message: /found nothing after/ });
  });

  it('goes on after a snapshot beyond records that could not be archived', async () => {
    const harness = new Harness();
    const { archiver, stream } = harness;
    const { writer } = await takeOver(harness.log);
    const links = await commit(writer, 1, 4);
    await archiver.archive(LOG, links[0]!, NEVER);
    stream.change((messages) =>
      changed(messages, ({ channel, position }) => channel === 1 && position > links[0]!.position),
    );
    await assert.rejects(archiver.archive(LOG, links[2]!, NEVER), { code: 'data_corrupt' });
    assert.equal(archiver.positionOf(LOG), undefined);
    archiver.resumeAt(LOG, links[2]!);
    await archiver.archive(LOG, links[3]!, NEVER);
    assert.deepEqual(await harness.chunks(), [
      `0-${links[0]!.position}`,
      `${links[2]!.position}-${links[3]!.position}`,
    ]);
  });

  it('begins with the first record of a log that was trimmed before it was archived', async () => {
    const harness = new Harness();
    const { writer } = await takeOver(harness.log);
    const links = await commit(writer, 1, 4);
    await harness.log.trimBefore(links[1]!.position);
    await harness.archiver.archive(LOG, writer.head, NEVER);
    assert.deepEqual(await harness.chunks(), [`${links[1]!.position}-${links[3]!.position}`]);
  });

  it('loses only the chunks that end before a position, and those of a deleted log', async () => {
    const harness = new Harness();
    const { archiver } = harness;
    const { writer } = await takeOver(harness.log);
    const links = await commit(writer, 1, 3);
    for (const link of links) await archiver.archive(LOG, link, NEVER);
    await archiver.removeThrough(LOG, links[1]!.position - 1);
    assert.deepEqual(await harness.chunks(), [
      `${links[0]!.position}-${links[1]!.position}`,
      `${links[1]!.position}-${links[2]!.position}`,
    ]);
    await archiver.stop(LOG);
    await commit(writer, 4, 4);
    await archiver.archive(LOG, writer.head, NEVER);
    assert.equal((await harness.chunks()).length, 2);
  });
});

describe('a log with an archive', () => {
  for (const [what, damage] of Object.entries(damages)) {
    it(`is read in spite of ${what}`, async () => {
      const harness = new Harness();
      const { writer } = await takeOver(harness.log);
      await commit(writer, 1, 4);
      await harness.archiver.archive(LOG, writer.head, NEVER);
      const whole = await harness.readArchive(LOG_START);
      harness.stream.change(damage);
      // Without this, a missing end would look like one that was never written.
      await commit(writer, 5, 5).catch(() => {});
      await assert.rejects(readAll(harness.log), { code: 'data_corrupt' });
      const read = await readAll(harness.repairing);
      assert.deepEqual(plain(read.slice(0, whole.length)), plain(whole));
      assert.deepEqual(outline(read), ['epoch 1 by a', 1, 2, 3, 4, 5]);
      assert.ok(harness.repairedCount > 0);
    });
  }

  it('can be taken over in spite of damage, and gives the next writer all records', async () => {
    const harness = new Harness();
    const { writer } = await takeOver(harness.log);
    await commit(writer, 1, 4);
    await harness.archiver.archive(LOG, writer.head, NEVER);
    harness.stream.change(damages['a flipped bit in a record']!);
    const { writer: next, records } = await takeOver(harness.repairing, { owner: 'b' });
    assert.deepEqual(outline(records), ['epoch 1 by a', 1, 2, 3, 4, 'epoch 2 by b']);
    await commit(next, 5, 5);
    assert.deepEqual(outline(await readAll(harness.repairing, writer.head)), ['epoch 2 by b', 5]);
  });

  it('is not written by a node while its end is missing', async () => {
    const harness = new Harness();
    const { writer } = await takeOver(harness.log);
    const [first] = await commit(writer, 1, 4);
    await harness.archiver.archive(LOG, writer.head, NEVER);
    // As if replicas without the newest messages had elected a leader among themselves.
    const shorter = new MemoryStream({ name: LOG });
    const { writer: lost } = await takeOver(new ChainedLog(shorter, { messageBytesMax: 1_000 }));
    await commit(lost, 1, 1);
    const { blobs } = harness;
    const log = new RepairingLog({
      log: new ChainedLog(shorter),
      archive: new LogArchive(LOG, { blobs, logger: silentLogger }),
      logger: silentLogger,
      onRepaired: () => {},
    });
    const after = { ...lost.head, position: first!.position };
    await assert.rejects(takeOver(log, { owner: 'b', after }), {
      code: 'data_corrupt',
      message: /the archive reaches to/,
    });
    // Nothing that another node could follow was appended.
    assert.deepEqual(outline(await readAll(new ChainedLog(shorter))), ['epoch 1 by a', 1]);
  });

  it('is read where it was trimmed, as far as the archive reaches', async () => {
    const harness = new Harness();
    const { archiver, repairing } = harness;
    const { writer } = await takeOver(harness.log);
    const links = await commit(writer, 1, 6);
    for (const link of links.slice(0, 5)) await archiver.archive(LOG, link, NEVER);
    await harness.log.trimBefore(links[4]!.position);
    assert.deepEqual(outline(await readAll(repairing)), ['epoch 1 by a', 1, 2, 3, 4, 5, 6]);
    assert.deepEqual(outline(await readAll(repairing, links[1])), [3, 4, 5, 6]);
    await archiver.removeThrough(LOG, links[1]!.position);
    assert.deepEqual(outline(await readAll(repairing, links[1])), [3, 4, 5, 6]);
    await assert.rejects(readAll(repairing, links[0]), /have been removed/);
  });

  it('is not read beyond a record that neither has', async () => {
    const harness = new Harness();
    const { archiver, repairing } = harness;
    const { writer } = await takeOver(harness.log);
    const links = await commit(writer, 1, 5);
    for (const link of links) await archiver.archive(LOG, link, NEVER);
    const [, damagedChunk] = await harness.archive.list();
    harness.stream.change((messages) =>
      changed(messages, ({ channel, position }) => channel === 1 && position > links[0]!.position),
    );
    await harness.damageBlob(damagedChunk!.name);
    const seen: (string | number)[] = [];
    const reading = (async () => {
      for await (const record of repairing.readToEnd(LOG_START, { signal: NEVER })) {
        seen.push(...outline([record]));
      }
    })();
    await assert.rejects(reading, { code: 'data_corrupt' });
    assert.deepEqual(seen, ['epoch 1 by a', 1]);
    // Another node has archived the same records.
    const other = harness.createArchiver();
    await harness.blobs.remove(damagedChunk!.name);
    await assert.rejects(readAll(repairing), { code: 'data_corrupt' });
    harness.stream.change((messages) =>
      changed(messages, ({ channel, position }) => channel === 1 && position > links[0]!.position),
    );
    await harness.archiver.removeThrough(LOG, links[4]!.position);
    await other.archive(LOG, links[4]!, NEVER);
    assert.deepEqual(outline(await readAll(repairing)), ['epoch 1 by a', 1, 2, 3, 4, 5]);
  });

  it('does not accept records of another log', async () => {
    const harness = new Harness();
    const { writer } = await takeOver(harness.log);
    await commit(writer, 1, 4);
    const stranger = new MemoryStream({ name: LOG });
    const { writer: strange } = await takeOver(
      new ChainedLog(stranger, { messageBytesMax: 1_000 }),
      { owner: 'c' },
    );
    await commit(strange, 1, 4);
    const { blobs } = harness;
    await new Archiver({
      blobs,
      openStream: () => stranger,
      logger: silentLogger,
    }).archive(LOG, strange.head, NEVER);
    const [record] = await readAll(harness.log);
    const after = record?.kind === 'barrier' ? LOG_START : record!.link;
    harness.stream.change(damages['a flipped bit in a part']!);
    await assert.rejects(readAll(harness.repairing, after), { code: 'data_corrupt' });
    assert.equal(harness.repairedCount, 0);
  });
});
