// Bases of the disk store: what they move, which files are removed after them, and readers that still need those files.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Store } from '../../src/storage/store.js';
import { eventually } from '../support/waiting.js';
import { makeDirectory, openIn } from './directories.js';

const RECORD_BYTES = 10_000;
const LOG_BYTES_MAX = 50_000;

describe('an embedded store and its bases', () => {
  let sequence = 0;

  async function append(store: Store, log: string): Promise<number> {
    const mine = ++sequence;
    const record = new Uint8Array(RECORD_BYTES).fill(mine % 251);
    await store.commit([{ kind: 'append', log, sequence: mine, record }]);
    return mine;
  }

  /** Writes and drops records until all of these files are gone. */
  async function untilRemoved(store: Store, directory: string, files: readonly string[]) {
    await eventually(`${files.join()} are removed`, async () => {
      for (let i = 0; i < 10; i++) await append(store, 'filler');
      await store.commit([{ kind: 'trim', log: 'filler', throughSequence: sequence }]);
      const found = await filesOf(directory);
      return !files.some((file) => found.includes(file));
    });
  }

  function assertRecords(store: Pick<Store, 'readLog'>, log: string, sequences: readonly number[]) {
    const entries = [...store.readLog(log, 0)];
    assert.deepEqual(
      entries.map((entry) => entry.sequence),
      sequences,
    );
    for (const entry of entries) {
      assert.equal(entry.record.byteLength, RECORD_BYTES);
      assert.ok(entry.record.every((byte) => byte === entry.sequence % 251));
    }
  }

  it('moves the few records that are left of a log, and removes its file', async () => {
    const directory = await makeDirectory();
    let store = await openIn(directory, LOG_BYTES_MAX);
    const kept = [await append(store, 'kept')];
    const value = new Uint8Array(500).fill(9);
    await store.commit([{ kind: 'put', key: ['long'], value }]);
    const files = await filesOf(directory);
    await untilRemoved(store, directory, files);
    for (let round = 0; round < 2; round++) {
      assertRecords(store, 'kept', kept);
      assert.deepEqual(store.get(['long']), value);
      assert.equal(store.logBytes('kept'), kept.length * RECORD_BYTES);
      await store.close();
      store = await openIn(directory, LOG_BYTES_MAX);
    }
    await store.close();
  });

  it('keeps files that are mostly in use, however old they are', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory, LOG_BYTES_MAX);
    const kept: number[] = [];
    for (let i = 0; i < 6; i++) kept.push(await append(store, 'kept'));
    const [base, log] = await filesOf(directory);
    await untilRemoved(store, directory, [base!]);
    assert.ok((await filesOf(directory)).includes(log!));
    assertRecords(store, 'kept', kept);
    await store.close();
    const again = await openIn(directory, LOG_BYTES_MAX);
    assertRecords(again, 'kept', kept);
    await again.close();
  });

  it('continues reading a log whose files are replaced and removed meanwhile', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory, LOG_BYTES_MAX);
    const wanted: number[] = [];
    for (let i = 0; i < 12; i++) wanted.push(await append(store, 'l'));
    const files = await filesOf(directory);
    const reading = store.readLog('l', 0)[Symbol.iterator]();
    const read = [reading.next().value];
    await store.commit([{ kind: 'dropLog', log: 'l' }]);
    for (let i = 0; i < 20; i++) await append(store, 'filler');
    assert.deepEqual([...store.readLog('l', 0)], []);
    for (let next = reading.next(); next.done !== true; next = reading.next())
      read.push(next.value);
    assert.deepEqual(
      read.map((entry) => entry.sequence),
      wanted,
    );
    assert.ok(
      read.every(({ sequence: at, record }) => record.every((byte: number) => byte === at % 251)),
    );
    await untilRemoved(store, directory, files);
    await store.close();
  });

  it('keeps the files of a snapshot, and of a reader that never ends, until they end or the store is closed', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory, LOG_BYTES_MAX);
    const wanted: number[] = [];
    for (let i = 0; i < 12; i++) wanted.push(await append(store, 'l'));
    const files = await filesOf(directory);
    await store.withSnapshot(async (snapshot) => {
      await store.commit([{ kind: 'dropLog', log: 'l' }]);
      for (let i = 0; i < 30; i++) await append(store, 'filler');
      await store.commit([{ kind: 'trim', log: 'filler', throughSequence: sequence }]);
      assertRecords(snapshot, 'l', wanted);
      snapshot.endEntries();
      await untilRemoved(store, directory, files);
    });
    for (let i = 0; i < 12; i++) await append(store, 'l2');
    const reading = store.readLog('l2', 0)[Symbol.iterator]();
    reading.next();
    await store.commit([{ kind: 'dropLog', log: 'l2' }]);
    for (let i = 0; i < 30; i++) await append(store, 'filler');
    await store.close();
    reading.return?.();
    const again = await openIn(directory, LOG_BYTES_MAX);
    assert.deepEqual([...again.readLog('l2', 0)], []);
    await again.close();
  });
});

async function filesOf(directory: string): Promise<string[]> {
  return (await readdir(join(directory, 'journal'))).sort();
}
