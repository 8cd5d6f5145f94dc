// Changes in the journal without a commit are found: at the start, or when the data is read.

import assert from 'node:assert/strict';
import { cp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { BACKUP_BASE, restoreBackup } from '../../src/storage/backup.js';
import { MARKER_FILE } from '../../src/storage/backup-marker.js';
import { openStore } from '../../src/storage/open-store.js';
import { MARK_FILE } from '../../src/storage/store-mark.js';
import {
  BASE,
  change,
  contentOf,
  copyOf,
  copyToDamage,
  FIRST_LOG,
  findingsIn,
  LAST_LOG,
  makeDirectoryToDamage,
  OLD_LOG,
  readContent,
  readDirectly,
  text,
} from './damaged-store.js';
import { openIn } from './directories.js';
import { framesIn } from './journal-frames.js';

async function errorsIn(directory: string): Promise<string> {
  const findings = await findingsIn(directory);
  return findings.filter((finding) => finding.startsWith('error: ')).join('\n');
}

interface Damage {
  readonly what: string;
  readonly file: string;
  /** Changes the bytes in place, or returns new ones. */
  readonly by: (bytes: Buffer) => Buffer | undefined;
  readonly message: RegExp;
  /** Set for damage in a record or a long value: other data can still be read. */
  readonly isFoundByReading?: true;
}

function flip(at: (frames: ReturnType<typeof framesIn>) => number): Damage['by'] {
  return (bytes) => {
    bytes[at(framesIn(bytes))]! ^= 4;
    return undefined;
  };
}

/** Reorders the frames of the file. */
function arrange(choose: <T>(frames: readonly T[]) => readonly T[]): Damage['by'] {
  return (bytes) =>
    Buffer.concat(choose(framesIn(bytes)).map(({ at, end }) => bytes.subarray(at, end)));
}

const DAMAGES: readonly Damage[] = [
  {
    what: 'another byte in the header of a frame',
    file: FIRST_LOG,
    by: flip(([, second]) => second!.at + 9),
    message:
      /00000004\.log( is damaged)?: at offset \d+, commits 3 to 3 are missing or cannot be read/,
  },
  {
    what: 'another byte in the directory of a frame',
    file: FIRST_LOG,
    by: flip(([, second]) => second!.directoryAt + 5),
    message:
      /00000004\.log( is damaged)?: at offset \d+, commits 3 to 3 are missing or cannot be read/,
  },
  {
    what: 'another byte in the header of the last frame of a log that others follow',
    file: FIRST_LOG,
    by: flip((frames) => frames.at(-1)!.at),
    message:
      /00000004\.log( is damaged)?: at offset \d+, commits \d+ to \d+ are missing or cannot be read/,
  },
  {
    what: 'another byte in the first header of the last log',
    file: LAST_LOG,
    by: flip(([first]) => first!.at),
    message: /00000006\.log( is damaged)?: at offset 0, commits \d+ to \d+ are missing/,
  },
  {
    what: 'another byte in the last header',
    file: LAST_LOG,
    by: flip((frames) => frames.at(-1)!.at + 30),
    message:
      /00000006\.log( is damaged)?: it ends with commit 10 at offset \d+, but store\.mark says that commit 11 was written: 1 commits/,
  },
  {
    what: 'another byte in a record',
    file: FIRST_LOG,
    by: flip(([first]) => first!.bodiesAt),
    message: /00000004\.log( is damaged)?: record 2 of log l at offset \d+ /,
    isFoundByReading: true,
  },
  {
    what: 'another byte in the last record',
    file: LAST_LOG,
    by: flip((frames) => frames.at(-1)!.bodiesAt),
    message: /00000006\.log( is damaged)?: record 11 of log l at offset \d+ /,
    isFoundByReading: true,
  },
  {
    what: 'another byte in a long value',
    file: LAST_LOG,
    by: flip((frames) => frames.at(-1)!.end - 1),
    message: /00000006\.log( is damaged)?: the value "long\/11" at offset \d+ /,
    isFoundByReading: true,
  },
  {
    what: 'a frame that is missing',
    file: LAST_LOG,
    by: arrange((frames) => frames.filter((_, i) => i !== 1)),
    message: /00000006\.log( is damaged)?: at offset \d+, commits (\d+) to \2 are missing/,
  },
  {
    what: 'two frames exchanged',
    file: LAST_LOG,
    by: arrange(([first, second, ...others]) => [second!, first!, ...others]),
    message: /00000006\.log( is damaged)?: at offset 0, commits (\d+) to \2 are missing/,
  },
  {
    what: 'a frame that is there again behind the last one',
    file: LAST_LOG,
    by: arrange((frames) => [...frames, frames[0]!]),
    message: /00000006\.log( is damaged)?: at offset \d+, commit \d+ does not follow commit 11/,
  },
  {
    what: 'the last frame twice',
    file: LAST_LOG,
    by: arrange((frames) => [...frames, frames.at(-1)!]),
    message: /00000006\.log( is damaged)?: at offset \d+, commit 11 does not follow commit 11/,
  },
  {
    what: 'a log without data',
    file: LAST_LOG,
    by: () => Buffer.alloc(0),
    message:
      /00000006\.log( is damaged)?: it ends with commit \d+ .* but store\.mark says that commit 11/,
  },
  {
    what: 'a log of zeros',
    file: LAST_LOG,
    by: (bytes) => bytes.fill(0),
    message: /00000006\.log( is damaged)?: it ends with commit \d+ at offset 0, but store\.mark/,
  },
  {
    what: 'a base without data',
    file: BASE,
    by: () => Buffer.alloc(0),
    message: /00000003\.base( is damaged)?: at offset 0, its state is incomplete/,
  },
  {
    what: 'another byte in the base',
    file: BASE,
    by: flip(([first]) => first!.directoryAt),
    message: /00000003\.base( is damaged)?: at offset 0, its state is incomplete/,
  },
];

describe('rot in the journal', () => {
  for (const { what, file, by, message, isFoundByReading } of DAMAGES) {
    it(`is found as ${what}`, async () => {
      const directory = await copyToDamage();
      assert.deepEqual(await findingsIn(directory), []);
      await change(directory, file, by);
      assert.match(await errorsIn(directory), message);
      if (isFoundByReading !== true) {
        await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message });
        return;
      }
      const store = await openIn(directory);
      assert.throws(() => contentOf(store), { code: 'data_corrupt', message });
      assert.equal([...store.list(['k'])].length, 5);
      await store.close();
    });
  }

  it('is found as logs that were exchanged', async () => {
    const directory = await copyToDamage();
    const path = (name: string) => join(directory, name);
    await rename(path(FIRST_LOG), path('other'));
    await rename(path(LAST_LOG), path(FIRST_LOG));
    await rename(path('other'), path(LAST_LOG));
    const message = /00000004\.log( is damaged)?: at offset 0, commits 2 to \d+ are missing/;
    await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message });
    assert.match(await errorsIn(directory), message);
  });

  for (const [file, message] of [
    [FIRST_LOG, /00000005\.log( is damaged)?: at offset 0, commits 2 to \d+ are missing/],
    [LAST_LOG, /00000005\.log( is damaged)?: it ends with commit \d+ .* but store\.mark says/],
  ] as const) {
    it(`is found as ${file} missing, or that of another store`, async () => {
      const directory = await copyToDamage();
      await rm(join(directory, file));
      await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message });
      assert.match(await errorsIn(directory), message);
      await cp(join(await makeDirectoryToDamage(), file), join(directory, file));
      const named = /0000000[456]\.log( is damaged)?: .* commits .* (missing|cannot be read)/;
      await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message: named });
      assert.match(await errorsIn(directory), named);
    });
  }

  it('is found as a missing base', async () => {
    const directory = await copyToDamage();
    await rm(join(directory, BASE));
    const missing = { code: 'data_corrupt', message: /newest base is missing in .*journal/ };
    await assert.rejects(openStore({ directory }), missing);
    await assert.rejects(findingsIn(directory), missing);
  });

  it('is found as a missing file to which the base refers', async () => {
    const directory = await copyToDamage();
    await rm(join(directory, OLD_LOG));
    const message = /00000002\.log or 00000002\.base( is damaged)?: it is missing, and records/;
    await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message });
    assert.match(await errorsIn(directory), message);
  });

  it('does not allow a new journal to replace a lost one', async () => {
    const directory = await copyToDamage();
    await rm(join(directory, 'journal'), { recursive: true });
    await assert.rejects(openStore({ directory }), {
      code: 'data_corrupt',
      message: /journal are missing, but segment files or a commit mark/,
    });
  });
});

describe('the mark of commits', () => {
  const values = async (directory: string, ...texts: string[]) => {
    const store = await openIn(directory);
    for (const value of texts) {
      await store.commit([{ kind: 'put', key: ['k', 'x'], value: text(value) }]);
    }
    await store.close();
  };

  it('shows that the journal is an older copy, and one of another history', async () => {
    const directory = await copyToDamage();
    const older = await copyOf(directory);
    await values(directory, 'x', 'y');
    const copyJournal = (from: string) =>
      cp(join(from, 'journal'), join(directory, 'journal'), { recursive: true });
    await copyJournal(older);
    const message =
      /00000006\.log( is damaged)?: it ends with commit 11 at offset \d+, but store\.mark says that commit 13 was written: 2 commits/;
    await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message });
    assert.match(await errorsIn(directory), message);

    // The older copy continues to the same number of commits, and to a greater one.
    for (const others of [['x', 'z'], ['z']]) {
      await values(older, ...others);
      await copyJournal(older);
      const different = /commit 13 does not match store\.mark: one of the two is from another/;
      await assert.rejects(openStore({ directory }), { code: 'data_corrupt', message: different });
      assert.match(await errorsIn(directory), different);
    }
  });

  it('is repaired with a warning when it is missing, damaged or an older copy', async () => {
    const directory = await copyToDamage();
    const path = join(directory, MARK_FILE);
    const older = await readFile(path);
    await values(directory, ...'x');
    const content = await readDirectly(directory);
    const cases: [Buffer | undefined, RegExp][] = [
      [undefined, /store\.mark is missing or damaged/],
      [Buffer.alloc(0), /store\.mark is missing or damaged/],
      [Buffer.alloc(8_192), /store\.mark is missing or damaged/],
      [Buffer.alloc(8_192, 'SGTMARK1'), /store\.mark is missing or damaged/],
      [older, /store\.mark is 1 commit behind the store/],
    ];
    for (const [bytes, expected] of cases) {
      if (bytes === undefined) await rm(path);
      else await writeFile(path, bytes);
      assert.match(
        (await findingsIn(directory)).join(),
        /^note: store\.mark: is [^:]*(?::[^:]*)?$/,
      );
      const opened = await readContent(directory);
      assert.equal(opened.content, content);
      assert.equal(opened.warnings.length, 1);
      assert.match(opened.warnings[0]!, expected);
      assert.deepEqual(await findingsIn(directory), []);
    }
  });
});

describe('rot in a backup', () => {
  async function makeBackup(): Promise<string> {
    const directory = await copyToDamage();
    const store = await openStore({ directory });
    const folder = join(directory, '..', 'backup');
    await store.backup(folder, async () => ({ blobNames: [], collectionCount: 0 }));
    await store.close();
    assert.deepEqual(await findingsIn(folder), []);
    return folder;
  }

  it('is found by verify in the base, missing or damaged', async () => {
    const folder = await makeBackup();
    await change(folder, BACKUP_BASE, (bytes) => {
      bytes[bytes.length - 1]! ^= 1;
      return undefined;
    });
    assert.match(
      await errorsIn(folder),
      /journal\/00000001\.base: has \d+ bytes with checksum crc32:.*; backup\.json says/,
    );
    await rm(join(folder, BACKUP_BASE));
    await assert.rejects(findingsIn(folder), {
      code: 'data_corrupt',
      message: /newest base is missing in .*journal/,
    });
  });

  it('is found in a base of several frames', async () => {
    const directory = await copyToDamage();
    const store = await openStore({ directory });
    for (let sequence = 20; sequence < 23; sequence++) {
      const record = new Uint8Array(1_100_000).fill(sequence);
      await store.commit([{ kind: 'append', log: 'l', sequence, record }]);
    }
    const folder = join(directory, '..', 'backup');
    await store.backup(folder, async () => ({ blobNames: [], collectionCount: 0 }));
    await store.close();
    // Without the marker, the folder is a data directory.
    await rm(join(folder, MARKER_FILE));
    const intact = await readFile(join(folder, BACKUP_BASE));
    const damages = [
      arrange(([first, second, third, ...others]) => [first!, third!, second!, ...others]),
      arrange(([first, , ...others]) => [first!, ...others]),
      arrange(([first, ...others]) => [first!, first!, ...others]),
      arrange((frames) => frames.slice(0, -1)),
      arrange((frames) => frames.slice(1)),
      flip((frames) => frames.at(-1)!.at),
    ];
    for (const by of damages) {
      await writeFile(join(folder, BACKUP_BASE), intact);
      await change(folder, BACKUP_BASE, by);
      const message = /00000001\.base( is damaged)?: at offset \d+, its state is incomplete/;
      assert.match(await errorsIn(folder), message);
      await assert.rejects(openStore({ directory: folder }), { code: 'data_corrupt', message });
    }
  });

  it('is repaired with a warning in the mark', async () => {
    const folder = await makeBackup();
    await rm(join(folder, MARK_FILE));
    assert.match((await findingsIn(folder)).join(), /^note: store\.mark: is missing or damaged/);
    const restored = join(folder, '..', 'restored');
    await restoreBackup(folder, restored);
    const { content, warnings } = await readContent(restored);
    assert.equal(content, (await readContent(join(folder, '..', 'copy'))).content);
    assert.match(warnings.join(), /store\.mark is missing or damaged: .* It was rewritten\.$/);
  });
});
