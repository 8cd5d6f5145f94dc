// What changed in the file of tables without a commit is found: at the start, or when it is read.

import assert from 'node:assert/strict';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type Database, open } from 'lmdb';
import { openStore } from '../../src/storage/open-store.js';
import { type Finding, StoreInspection } from '../../src/storage/store-inspection.js';
import { makeDirectory, openIn } from './directories.js';

const text = (value: string) => new Uint8Array(Buffer.from(value));
const key = (...parts: string[]) => Buffer.from(parts.map((part) => `${part}\0`).join(''));
const recordKey = (sequence: number) =>
  Buffer.concat([key('l'), Buffer.alloc(7), Buffer.of(sequence)]);

async function makeFilledDirectory(): Promise<string> {
  const directory = await makeDirectory();
  const store = await openIn(directory);
  for (let i = 1; i <= 9; i++) {
    await store.commit([
      { kind: 'append', log: 'l', sequence: i, record: text(`record ${i}`) },
      { kind: 'put', key: ['k', String(i)], value: text(`value ${i}`) },
    ]);
    // The records are removed before the last commits.
    if (i === 4) await store.commit([{ kind: 'trim', log: 'l', throughSequence: 2 }]);
  }
  await store.close();
  return directory;
}

type Tables = (name: string) => Database<Buffer, Buffer>;

/** Changes the tables as only damage would. */
async function changeTables(directory: string, change: (table: Tables) => void): Promise<void> {
  const encodings = { encoding: 'binary', keyEncoding: 'binary' } as const;
  const root = open<Buffer, Buffer>({ path: join(directory, 'store.lmdb'), ...encodings });
  await root.transaction(() => change((name) => root.openDB({ name, ...encodings })));
  await root.close();
}

async function errorsOf(directory: string): Promise<string[]> {
  const findings: Finding[] = [];
  const inspection = await StoreInspection.open(directory, (finding) => findings.push(finding));
  await inspection.close();
  return findings.filter(({ severity }) => severity === 'error').map(({ what }) => what);
}

async function foundIn(directory: string): Promise<string[]> {
  return (await notesOf(directory)).filter((line) => line.startsWith('error: '));
}

async function notesOf(directory: string): Promise<string[]> {
  const findings: Finding[] = [];
  const inspection = await StoreInspection.open(directory, (finding) => findings.push(finding));
  await inspection.close();
  return findings.map(({ severity, where, what }) => `${severity}: ${where}: ${what}`);
}

interface Damage {
  readonly what: string;
  readonly change: (table: Tables) => void;
  readonly message: RegExp;
  /** Of a log, which is read later. */
  readonly isFoundByReading?: true;
}

const DAMAGES: readonly Damage[] = [
  {
    what: 'a value that has another byte',
    change: (table) => {
      const bytes = Buffer.from(table('values').get(key('k', '3'))!);
      bytes[0]! ^= 4;
      table('values').put(key('k', '3'), bytes);
    },
    message: /the entry "k\/3" does not have its checksum/,
  },
  {
    what: 'a value under the key of another one',
    change: (table) => {
      table('values').put(key('k', '3'), table('values').get(key('k', '4'))!);
    },
    message: /the entry "k\/3" does not have its checksum/,
  },
  {
    what: 'a value that vanished',
    change: (table) => {
      table('values').remove(key('k', '3'));
    },
    message: /have 9 intact entries, but commit \d+ left 10/,
  },
  {
    what: 'the entry of a log that vanished',
    change: (table) => {
      table('logs').remove(key('l'));
    },
    message: /have 9 intact entries, but commit \d+ left 10|the entry of log l/,
  },
  {
    what: 'a head that vanished',
    change: (table) => {
      table('meta').remove(key('head'));
    },
    message: /the head of the tables is missing or damaged/,
  },
  {
    what: 'a record that has another byte',
    change: (table) => {
      const bytes = Buffer.from(table('records').get(recordKey(5))!);
      bytes[2]! ^= 1;
      table('records').put(recordKey(5), bytes);
    },
    message: /record 5 (of log l )?does not have (the|its) checksum/,
    isFoundByReading: true,
  },
  {
    what: 'a record that is missing',
    change: (table) => {
      table('records').remove(recordKey(5));
    },
    message: /records are missing: 6 follows 5, and 4 was found before it/,
    isFoundByReading: true,
  },
  {
    what: 'the first record missing',
    change: (table) => {
      table('records').remove(recordKey(3));
    },
    message: /record 3, before 4, is missing/,
    isFoundByReading: true,
  },
  {
    what: 'the last records missing',
    change: (table) => {
      table('records').remove(recordKey(8));
      table('records').remove(recordKey(9));
    },
    message: /its last records are missing: 7 was found, expected 9/,
    isFoundByReading: true,
  },
];

describe('rot in the file of tables', () => {
  for (const { what, change, message, isFoundByReading } of DAMAGES) {
    it(`is found as ${what}`, async () => {
      const directory = await makeFilledDirectory();
      assert.deepEqual(await errorsOf(directory), []);
      await changeTables(directory, change);
      assert.match((await errorsOf(directory)).join('\n'), message);
      if (isFoundByReading !== true) {
        await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message });
        return;
      }
      const store = await openIn(directory);
      assert.throws(() => [...store.readLog('l', 0)], { code: 'data_corrupt', message });
      assert.equal([...store.list(['k'])].length, 9);
      await store.close();
    });
  }

  it('is found as a value of an earlier commit', async () => {
    const directory = await makeFilledDirectory();
    let old: Buffer;
    await changeTables(directory, (table) => {
      old = Buffer.from(table('values').get(key('k', '3'))!);
    });
    const store = await openIn(directory);
    await store.commit([{ kind: 'put', key: ['k', '3'], value: text('newer') }]);
    await store.close();
    await changeTables(directory, (table) => {
      table('values').put(key('k', '3'), old);
    });
    const message = /are not those that commit \d+ left: some are older ones/;
    await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message });
    assert.match((await errorsOf(directory)).join(), message);
  });

  it('is found as a record of another history', async () => {
    const directory = await makeFilledDirectory();
    const other = await makeFilledDirectory();
    const records: Buffer[] = [];
    const store = await openIn(other);
    await store.commit([{ kind: 'append', log: 'l', sequence: 10, record: text('other') }]);
    await store.close();
    await changeTables(other, (table) => {
      records.push(Buffer.from(table('records').get(recordKey(10))!));
    });
    const again = await openIn(directory);
    await again.commit([{ kind: 'append', log: 'l', sequence: 10, record: text('mine!') }]);
    await again.close();
    await changeTables(directory, (table) => {
      table('records').put(recordKey(10), records[0]!);
    });
    const message = /record 10 is not the one that was written last/;
    assert.match((await errorsOf(directory)).join(), message);
    const opened = await openIn(directory);
    assert.throws(() => [...opened.readLog('l', 5)], { code: 'data_corrupt', message });
    await opened.close();
  });
});

interface FilePlaces {
  readonly bytes: Buffer;
  /** Of the current meta page and of the other one. */
  readonly meta: number;
  readonly otherMeta: number;
  /** Of the node of a table in the list of tables. */
  readonly table: (name: string) => number;
  /** Of a list of free pages with at least two single ones. */
  readonly freeList: number;
}

const PAGE_BYTES = 4096;
const HEADER_BYTES = 24;
const NODE_BYTES = 8;

/** Where lmdb keeps what it follows. */
function placesIn(bytes: Buffer): FilePlaces {
  const transaction = (meta: number) => bytes.readBigUInt64LE(meta + 152);
  const [meta, otherMeta] =
    transaction(0) > transaction(PAGE_BYTES) ? [0, PAGE_BYTES] : [PAGE_BYTES, 0];
  const rootAt = (tree: number) => Number(bytes.readBigUInt64LE(tree + 40)) * PAGE_BYTES;
  const nodesOf = (page: number) =>
    Array.from(
      { length: bytes.readUInt16LE(page + 20) / 2 },
      (_, i) => page + HEADER_BYTES + bytes.readUInt16LE(page + HEADER_BYTES + 2 * i),
    );
  const valueAt = (node: number) => node + NODE_BYTES + bytes.readUInt16LE(node + 6);
  const freeList = nodesOf(rootAt(meta + 48))
    .map(valueAt)
    .find((at) => [1, 2].every((i) => bytes.readBigInt64LE(at + 8 * i) > 0n));
  const table = (name: string) =>
    nodesOf(rootAt(meta + 96)).find((node) => bytes.indexOf(name, node) === node + NODE_BYTES)!;
  return { bytes, meta, otherMeta, table, freeList: freeList! };
}

const FOLLOWED: readonly {
  readonly what: string;
  readonly change: (places: FilePlaces) => void;
  readonly message: RegExp;
}[] = [
  {
    what: 'a page of a later transaction, which lmdb would write to in place',
    change: ({ bytes, meta }) => {
      const root = Number(bytes.readBigUInt64LE(meta + 96 + 40));
      bytes.writeUInt32LE(0x4000, root * PAGE_BYTES + 8);
    },
    message: /page \d+ \(table list\):? was written by a transaction that does not exist/,
  },
  {
    what: 'an older meta page with the number of a later transaction',
    change: ({ bytes, otherMeta }) => {
      bytes[otherMeta + 154]! ^= 1;
    },
    message: /pages 0 and 1 are of transactions \d+ and \d+, which do not follow one another/,
  },
  {
    what: 'a table with several values per key',
    change: ({ bytes, table }) => {
      const node = table('values');
      bytes[node + NODE_BYTES + bytes.readUInt16LE(node + 6) + 4]! ^= 4;
    },
    message: /table "values":? has flags 4, expected 0/,
  },
  {
    what: 'a table that is marked as a value',
    change: ({ bytes, table }) => {
      bytes[table('values') + 4]! ^= 2;
    },
    message: /the entry "values(\\u0000)?" has flags 0/,
  },
  {
    what: 'a page that is free twice',
    change: ({ bytes, freeList }) => {
      bytes.copy(bytes, freeList + 16, freeList + 8, freeList + 16);
    },
    message: /lists page \d+, which is in use or listed before/,
  },
  {
    what: 'a list of free pages that reaches beyond its value',
    change: ({ bytes, freeList }) => {
      bytes[freeList + 2]! ^= 1;
    },
    message: /entry \d+ of free list:? has \d+ numbers, expected \d+/,
  },
];

describe('what lmdb follows in its file', () => {
  for (const { what, change, message } of FOLLOWED) {
    it(`is checked: ${what}`, async () => {
      const directory = await makeFilledDirectory();
      const path = join(directory, 'store.lmdb');
      const bytes = await readFile(path);
      change(placesIn(bytes));
      await writeFile(path, bytes);
      await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message });
      assert.match((await foundIn(directory)).join('\n'), message);
    });
  }
});

describe('the mark of commits', () => {
  it('shows that the store is an older copy, and one of another history', async () => {
    const directory = await makeFilledDirectory();
    const path = join(directory, 'store.lmdb');
    const older = await readFile(path);
    const store = await openIn(directory);
    await store.commit([{ kind: 'put', key: ['k', 'x'], value: text('x') }]);
    await store.commit([{ kind: 'put', key: ['k', 'y'], value: text('y') }]);
    await store.close();
    await writeFile(path, older);
    const message =
      /ends with commit \d+, but store\.mark says that commit \d+ was written: 2 commits/;
    await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message });
    assert.match((await errorsOf(directory)).join(), message);

    // The older copy goes on to the same number of commits without this mark.
    const other = join(await makeDirectory(), 'copy');
    await cp(directory, other, { recursive: true, filter: (name) => !name.includes('lock') });
    await rm(join(other, 'store.mark'));
    const fork = await openIn(other);
    for (const value of ['x', 'z']) {
      await fork.commit([{ kind: 'put', key: ['k', value], value: text(value) }]);
    }
    await fork.close();
    await cp(join(other, 'store.lmdb'), path);
    const different = /commit \d+ of the store is not the one that store\.mark was written for/;
    await assert.rejects(openStore({ directory }), {
      code: 'data_corrupt',
      message: different,
    });
    assert.match((await errorsOf(directory)).join(), different);
  });

  it('is repaired with a warning when it is missing, damaged or an older copy', async () => {
    const directory = await makeFilledDirectory();
    const mark = join(directory, 'store.mark');
    const older = await readFile(mark);
    const store = await openIn(directory);
    for (let i = 0; i < 3; i++) {
      await store.commit([{ kind: 'put', key: ['k', 'x'], value: text(`${i}`) }]);
    }
    await store.close();
    const cases: [Buffer | undefined, RegExp][] = [
      [undefined, /store\.mark is missing or damaged/],
      [Buffer.alloc(0), /store\.mark is missing or damaged/],
      [Buffer.alloc(8_192), /store\.mark is missing or damaged/],
      [Buffer.alloc(8_192, 'SGTMARK1'), /store\.mark is missing or damaged/],
      [older, /store\.mark is 3 commits behind the store/],
    ];
    for (const [bytes, expected] of cases) {
      if (bytes === undefined) await rm(mark);
      else await writeFile(mark, bytes);
      assert.match((await notesOf(directory)).join(), /note: store\.mark: is/);
      const warnings: string[] = [];
      const opened = await openStore({ directory, warn: (message) => warnings.push(message) });
      await opened.close();
      assert.equal(warnings.length, 1);
      assert.match(warnings[0]!, expected);
      assert.deepEqual(await notesOf(directory), []);
    }
  });

  it('may lack the last commit, whose acknowledgement a crash prevented', async () => {
    const directory = await makeFilledDirectory();
    const mark = join(directory, 'store.mark');
    const older = await readFile(mark);
    const store = await openIn(directory);
    await store.commit([{ kind: 'put', key: ['k', 'x'], value: text('x') }]);
    await store.close();
    await writeFile(mark, older);
    const warnings: string[] = [];
    const opened = await openStore({ directory, warn: (message) => warnings.push(message) });
    assert.equal(Buffer.from(opened.get(['k', 'x'])!).toString(), 'x');
    await opened.close();
    assert.deepEqual(warnings, []);
  });

  it('does not allow a new file of tables in the place of a lost one', async () => {
    const directory = await makeFilledDirectory();
    await rm(join(directory, 'store.lmdb'));
    await assert.rejects(openStore({ directory }), {
      code: 'data_corrupt',
      message: /is missing or empty, but there are segment files or a mark of commits beside it/,
    });
  });
});
