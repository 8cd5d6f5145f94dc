// The next start cuts off a write that was interrupted by a kill or a power failure, and nothing else.

import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { MARK_FILE } from '../../src/storage/store-mark.js';
import {
  change,
  commit,
  contentOf,
  copyOf,
  copyToDamage,
  cutToEachLength,
  findingsIn,
  LAST_LOG,
  readContent,
  readDirectly,
  readWithEach,
  text,
} from './damaged-store.js';
import { makeDirectory, openIn } from './directories.js';
import { type FrameRange, framesIn } from './journal-frames.js';

describe('a write that was torn', () => {
  /** The store before and after a commit whose mark was not written, as after a kill. */
  async function makeTornDirectory(): Promise<{
    directory: string;
    bytes: Buffer;
    frame: FrameRange;
    before: string;
    after: string;
  }> {
    const directory = await copyToDamage();
    const mark = await readFile(join(directory, MARK_FILE));
    const before = await readDirectly(directory);
    const store = await openIn(directory);
    await store.commit([
      { kind: 'append', log: 'l', sequence: 100, record: text('torn '.repeat(120)) },
      { kind: 'put', key: ['k', '1'], value: text('a later value') },
    ]);
    await store.close();
    await writeFile(join(directory, MARK_FILE), mark);
    const bytes = await readFile(join(directory, LAST_LOG));
    const frame = framesIn(bytes).at(-1)!;
    const after = await readDirectly(directory);
    assert.notEqual(before, after);
    return { directory, bytes: bytes.subarray(0, frame.end + 1_000), frame, before, after };
  }

  it('is cut off wherever it ends', async () => {
    const { directory, bytes, frame, before, after } = await makeTornDirectory();
    const { at, end } = frame;
    const lengths = Array.from({ length: end - at }, (_, i) => at + i);
    const cuts = lengths.map((length) => bytes.subarray(0, length));
    // The space was filled with zeros before.
    const zeroed = lengths.map((length) => Buffer.from(bytes).fill(0, length));
    for (const contents of [cuts, zeroed]) {
      const found = await readWithEach(directory, LAST_LOG, contents);
      // The last byte of the frame is not zero.
      assert.equal(
        found.findIndex((content) => content !== before),
        -1,
      );
    }
    const whole = [bytes.subarray(0, end), bytes];
    assert.deepEqual(await readWithEach(directory, LAST_LOG, whole), [after, after]);
  });

  it('is cut off whichever sectors of it are missing', async () => {
    const { directory, bytes, frame, before } = await makeTornDirectory();
    const sectors: Buffer[] = [];
    for (let at = frame.at - (frame.at % 512); at < frame.end; at += 512) {
      const [from, to] = [Math.max(at, frame.at), Math.min(at + 512, frame.end)];
      sectors.push(Buffer.from(bytes).fill(0, from, to));
    }
    assert.ok(sectors.length > 1);
    const found = await readWithEach(directory, LAST_LOG, sectors);
    assert.deepEqual(
      found,
      sectors.map(() => before),
    );
  });

  it('is reported by verify as no loss, and is overwritten', async () => {
    const { directory, bytes, frame, before } = await makeTornDirectory();
    for (const length of [frame.at + 4, frame.directoryAt, frame.bodiesAt, frame.end - 1]) {
      const copy = await copyOf(directory);
      await change(copy, LAST_LOG, () => Buffer.from(bytes).fill(0, length));
      const findings = await findingsIn(copy);
      assert.equal(findings.length, 1);
      assert.match(
        findings[0]!,
        /^note: journal\/00000006\.log: at offset \d+, the last write was not finished; it was never/,
      );
      const { content, warnings } = await readContent(copy);
      assert.equal(content, before);
      assert.match(
        warnings.join('\n'),
        /^The last write to .*00000006\.log was not finished.* cut off at offset \d+\.$/,
      );
      assert.deepEqual(await findingsIn(copy), []);
      const store = await openIn(copy);
      await store.commit([{ kind: 'append', log: 'l', sequence: 100, record: text('again') }]);
      await store.close();
      assert.deepEqual(await findingsIn(copy), []);
      const again = await readContent(copy);
      assert.ok(again.content.endsWith('again'));
    }
  });

  it('counts as damage if the mark says that it was acknowledged', async () => {
    const { directory, bytes, frame } = await makeTornDirectory();
    await (await openIn(directory)).close();
    const lengths = Array.from({ length: frame.end - frame.at }, (_, i) => frame.at + i);
    const found = await readWithEach(
      directory,
      LAST_LOG,
      lengths.map((length) => bytes.subarray(0, length)),
    );
    assert.equal(
      found.findIndex((content) => content !== undefined),
      -1,
    );
  });

  it('may be the first write of a new log', async () => {
    const directory = await copyToDamage();
    const before = await readDirectly(directory);
    const mark = await readFile(join(directory, MARK_FILE));
    const store = await openIn(directory, 1);
    await store.commit([{ kind: 'append', log: 'l', sequence: 100, record: text('torn') }]);
    await store.close();
    await writeFile(join(directory, MARK_FILE), mark);
    const [newest] = (await readdir(join(directory, 'journal'))).slice(-1);
    const log = join('journal', newest!);
    assert.notEqual(log, LAST_LOG);
    const bytes = await readFile(join(directory, log));
    const [frame] = framesIn(bytes);
    const cuts = [...cutToEachLength(bytes.subarray(0, frame!.end))].slice(0, -1);
    const found = await readWithEach(directory, log, cuts);
    assert.equal(
      found.findIndex((content) => content !== before),
      -1,
    );
    await change(directory, log, () => cuts.at(-1));
    assert.equal((await readContent(directory)).content, before);
  });

  it('is never one that was acknowledged when the process ended', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory);
    for (let i = 1; i <= 10; i++) {
      await commit(store, i);
      const copy = await copyOf(directory);
      const { content, warnings } = await readContent(copy);
      assert.equal(content, contentOf(store));
      // The mark is written a moment after the commit.
      assert.ok(warnings.every((warning) => /store\.mark is \d+ commits? behind/.test(warning)));
    }
    await store.close();
  });
});
