// The contract of the logs of collections. The test of each stream of messages provides a way to create one.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import {
  type CollectionLog,
  type Commit,
  LOG_START,
  type LogLink,
  type LogRecord,
  LogTrimmedError,
  type LogWriter,
} from '../../src/cluster/logs/collection-log.js';
import type { MessageStream } from '../../src/cluster/logs/message-stream.js';

export interface StreamHarness {
  /** Creates an empty stream. */
  create(): Promise<MessageStream>;
  /** Opens the stream like another process; undefined if only one process can open it. */
  openAgain?(stream: MessageStream): Promise<MessageStream>;
}

const MESSAGE_BYTES_MAX = 1_000;
const NEVER = new AbortController().signal;

export function commitOf(
  sequence: number,
  shards: Readonly<Record<number, number>> = { 0: 10 },
): Commit {
  return {
    firstSequence: sequence,
    lastSequence: sequence,
    fragments: Object.entries(shards).map(([shard, byteCount]) => ({
      shard: Number(shard),
      bytes: Buffer.alloc(byteCount, `${sequence} of ${shard}, `),
    })),
    summary: Buffer.from(`summary ${sequence}`),
  };
}

export async function takeOver(
  log: CollectionLog,
  { owner = 'a', after = LOG_START }: { owner?: string; after?: LogLink } = {},
): Promise<{ writer: LogWriter; records: LogRecord[] }> {
  const records: LogRecord[] = [];
  const writer = await log.takeOver({
    owner,
    after,
    signal: NEVER,
    onRecord: (record) => records.push(record),
  });
  return { writer, records };
}

export async function readAll(
  log: CollectionLog,
  after: LogLink = LOG_START,
  shards?: readonly number[],
): Promise<LogRecord[]> {
  const records: LogRecord[] = [];
  const options = shards === undefined ? { signal: NEVER } : { signal: NEVER, shards };
  for await (const record of log.readToEnd(after, options)) records.push(record);
  return records;
}

export async function committed(writer: LogWriter, commit: Commit): Promise<LogLink> {
  const outcome = await writer.append(commit);
  assert.equal(outcome.kind, 'committed', JSON.stringify(outcome));
  return (outcome as { link: LogLink }).link;
}

/** The sequences of the commits, and "epoch n by owner". */
export function outline(records: readonly LogRecord[]): (number | string)[] {
  return records.flatMap((record) => {
    if (record.kind === 'barrier') return [];
    if (record.kind === 'commit') return record.commit.firstSequence;
    return `epoch ${record.link.epoch} by ${record.owner}`;
  });
}

export function logContract(name: string, harness: StreamHarness): void {
  const open = async () => {
    const stream = await harness.create();
    return { stream, log: new ChainedLog(stream, { messageBytesMax: MESSAGE_BYTES_MAX }) };
  };

  describe(`${name}: a log of a collection`, () => {
    it('reads what was committed, in order, from any record on', async () => {
      const { log } = await open();
      const { writer, records } = await takeOver(log);
      assert.deepEqual(outline(records), ['epoch 1 by a']);
      const commits = [
        commitOf(1, { 0: 1, 7: 1_000 }),
        commitOf(2, { 3: 2_500, 0: 0 }),
        commitOf(3, {}),
        commitOf(4, { 0: 1_001 }),
      ];
      const links: LogLink[] = [];
      for (const commit of commits) links.push(await committed(writer, commit));
      assert.deepEqual(writer.head, links.at(-1));
      const read = await readAll(log);
      assert.deepEqual(outline(read), ['epoch 1 by a', 1, 2, 3, 4]);
      const inOrder = ({ fragments, ...rest }: Commit) => ({
        ...rest,
        summary: Buffer.from(rest.summary),
        fragments: fragments.map(({ shard, bytes }) => ({ shard, bytes: Buffer.from(bytes) })),
      });
      const found = read.flatMap((record) => (record.kind === 'commit' ? record : []));
      assert.deepEqual(
        found.map(({ commit }) => inOrder(commit)),
        commits.map(inOrder),
      );
      assert.deepEqual(
        found.map(({ link }) => link),
        links,
      );
      assert.deepEqual(outline(await readAll(log, links[1])), [3, 4]);
      assert.deepEqual(await readAll(log, links[3]), []);
    });

    it('reads the fragments of some shards, and every record', async () => {
      const { log } = await open();
      const { writer } = await takeOver(log);
      await committed(writer, commitOf(1, { 0: 10, 1: 2_500, 2: 10 }));
      await committed(writer, commitOf(2, { 0: 10, 2: 10 }));
      const read = await readAll(log, LOG_START, [1]);
      const fragments = read.flatMap((record) =>
        record.kind === 'commit' ? [record.commit.fragments.map(({ shard }) => shard)] : [],
      );
      assert.deepEqual(fragments, [[1], []]);
    });

    it('yields new commits while it reads, until the signal is aborted', async () => {
      const { log } = await open();
      const { writer } = await takeOver(log);
      const ending = new AbortController();
      const seen: number[] = [];
      const reading = (async () => {
        for await (const record of log.read(LOG_START, { signal: ending.signal })) {
          if (record.kind !== 'commit') continue;
          seen.push(record.commit.firstSequence);
          if (seen.length === 20) ending.abort();
        }
      })();
      for (let sequence = 1; sequence <= 20; sequence++) {
        await committed(writer, commitOf(sequence, { [sequence % 3]: 1_500 }));
      }
      await reading;
      assert.deepEqual(
        seen,
        Array.from({ length: 20 }, (_, i) => i + 1),
      );
    });

    it('returns ascending positions of barriers, which do not hinder the writer', async () => {
      const { log } = await open();
      const { writer } = await takeOver(log);
      let last = await log.barrier();
      for (let sequence = 1; sequence <= 3; sequence++) {
        const { position } = await committed(writer, commitOf(sequence));
        assert.ok(position > last);
        last = await log.barrier();
        assert.ok(last > position);
      }
      assert.deepEqual(outline(await readAll(log)), ['epoch 1 by a', 1, 2, 3]);
    });

    it('fences a writer when another one takes over, which first gets all commits', async () => {
      const { stream, log } = await open();
      const { writer: first } = await takeOver(log);
      const link = await committed(first, commitOf(1));
      const other = new ChainedLog((await harness.openAgain?.(stream)) ?? stream);
      const { writer: second, records } = await takeOver(other, { owner: 'b', after: link });
      assert.deepEqual(outline(records), ['epoch 2 by b']);
      assert.equal(second.epoch, 2);
      const outcome = await first.append(commitOf(2));
      assert.equal(outcome.kind, 'unknown');
      assert.deepEqual(await first.settle(NEVER), { kind: 'fenced', epoch: 2, owner: 'b' });
      await committed(second, commitOf(2));
      assert.deepEqual(outline(await readAll(log)), ['epoch 1 by a', 1, 'epoch 2 by b', 2]);
    });

    it('lets concurrent take-overs succeed one after another', async () => {
      const { log } = await open();
      const writers = await Promise.all(
        ['a', 'b', 'c', 'd'].map((owner) => takeOver(log, { owner })),
      );
      const epochs = writers.map(({ writer }) => writer.epoch).sort();
      assert.deepEqual(epochs, [1, 2, 3, 4]);
      const outcomes = await Promise.all(
        writers.map(async ({ writer }) => {
          const outcome = await writer.append(commitOf(1));
          return outcome.kind === 'unknown' ? await writer.settle(NEVER) : outcome;
        }),
      );
      const kinds = outcomes.map(({ kind }, i) => `${writers[i]!.writer.epoch} ${kind}`).sort();
      assert.deepEqual(kinds, ['1 fenced', '2 fenced', '3 fenced', '4 committed']);
    });

    it('removes the records before a position, and fails reads that need them', async () => {
      const { log } = await open();
      const { writer } = await takeOver(log);
      const links: LogLink[] = [];
      for (let sequence = 1; sequence <= 4; sequence++) {
        links.push(await committed(writer, commitOf(sequence, { 0: 1_500 })));
      }
      await log.trimBefore(links[2]!.position);
      assert.deepEqual(outline(await readAll(log, links[2])), [4]);
      await assert.rejects(readAll(log, links[0]), LogTrimmedError);
      // The fragments of the first record that is left are gone.
      await assert.rejects(readAll(log, links[1]), LogTrimmedError);
      await assert.rejects(readAll(log), LogTrimmedError);
      await committed(writer, commitOf(5));
      assert.deepEqual(outline(await readAll(log, links[2])), [4, 5]);
      // The chain also goes on for a writer that takes over.
      const { writer: next } = await takeOver(log, { owner: 'b', after: links[3]! });
      await committed(next, commitOf(6));
      assert.deepEqual(outline(await readAll(log, links[3])), [5, 'epoch 2 by b', 6]);
    });

    it('writes a commit of many megabytes as one', async () => {
      const stream = await harness.create();
      const log = new ChainedLog(stream);
      const { writer } = await takeOver(log);
      const shards = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [i, 3_000_000]));
      await committed(writer, commitOf(1, shards));
      const [, record] = await readAll(log);
      assert.equal(record?.kind, 'commit');
      const fragments = record?.kind === 'commit' ? record.commit.fragments : [];
      assert.deepEqual(
        fragments.map(({ bytes }) => bytes.length),
        Object.values(shards),
      );
    });
  });
}
