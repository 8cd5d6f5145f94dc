// Messages about directories that the store cannot use, or that other users can access.

import assert from 'node:assert/strict';
import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { openStore } from '../../src/storage/open-store.js';
import { makeDirectory } from './directories.js';

async function warningsAbout(directory: string): Promise<string[]> {
  const warnings: string[] = [];
  const store = await openStore({ directory, warn: (message) => warnings.push(message) });
  await store.writeBlob('c/1', [new Uint8Array(8)]);
  await store.close();
  return warnings;
}

describe('a data directory', () => {
  it('is rejected with the reason if it is a file, or below one', async () => {
    const file = join(await makeDirectory(), 'file');
    await writeFile(file, 'mine');
    for (const [directory, message] of [
      [file, /it is a file, not a directory/],
      [join(file, 'data'), /a part of its path is a file/],
    ] as const) {
      await assert.rejects(openStore({ directory }), {
        code: 'configuration_invalid',
        message,
      });
    }
  });

  it('of another user is rejected with its owner and not changed', async (t) => {
    if (process.geteuid?.() !== 0) return t.skip('not run as root');
    const directory = join(await makeDirectory(), 'data');
    await (await openStore({ directory })).close();
    const before = await readdir(directory);
    await chmod(join(directory, '..'), 0o755);
    const refused = {
      code: 'configuration_invalid',
      message: /\(65534\).* belongs to user 0 .*0700/,
    };
    process.seteuid?.(65534);
    try {
      await assert.rejects(openStore({ directory }), refused);
    } finally {
      process.seteuid?.(0);
    }
    assert.deepEqual(await readdir(directory), before);
    return undefined;
  });

  it('contains only files that its owner alone can read, even if it existed before', async () => {
    const directory = join(await makeDirectory(), 'mounted');
    await mkdir(directory);
    await chmod(directory, 0o755);
    const warnings = await warningsAbout(directory);
    const names = await readdir(directory, { recursive: true });
    assert.ok(
      names.includes('journal/00000001.base') && names.includes('segments/c/1'),
      names.join(),
    );
    for (const name of names) {
      const found = await stat(join(directory, name));
      const expected = found.isDirectory() ? 0o700 : 0o600;
      assert.equal(found.mode & 0o777, expected, name);
    }
    assert.equal(warnings.length, 1);
    assert.match(warnings[0]!, /Other users can access .*mounted \(mode 755\)/);
    await chmod(directory, 0o700);
    assert.deepEqual(await warningsAbout(directory), []);
    // Kubernetes sets this mode on a volume with fsGroup.
    await chmod(directory, 0o2770);
    assert.deepEqual(await warningsAbout(directory), []);
  });

  it('causes a warning, once, if it is new but contains other files', async () => {
    const directory = await makeDirectory();
    await mkdir(join(directory, 'lost+found'));
    await writeFile(join(directory, 'thesis.tex'), '');
    const [warning] = await warningsAbout(directory);
    assert.match(
      warning!,
      /was not a data directory of Sagitta: it contains other files \(thesis\.tex\)/,
    );
    assert.deepEqual(await warningsAbout(directory), []);
  });
});
