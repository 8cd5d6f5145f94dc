// Damaged files that crash a library, or that it refuses only after opening them. They come from the corpus of the
// decoder fuzzer, which found them.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openInput } from '../../src/cli/files/file-source.js';
import { openVectors } from '../../src/readers/formats.js';
import { ReadError } from '../../src/readers/read-error.js';

/** Path relative to the compiled file in dist/test/readers. */
const CORPUS = new URL('../../../test/hostile/decoders/corpus/', import.meta.url);

const SOURCE = new URL('../../src/', import.meta.url);

/** A program that reads the file and prints the error. */
const READ = `
import { openVectors } from '${SOURCE.href}readers/formats.js';
import { openInput } from '${SOURCE.href}cli/files/file-source.js';
try {
  const reader = await openVectors(await openInput(process.argv[1]), { dataset: undefined, rowsPerBatch: 3 });
  for await (const _ of reader.batches(0));
} catch (error) {
  console.log(String(error));
}
`;

describe('a damaged file is refused with a message', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'sagitta-damaged-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  async function read(name: string, damage: (bytes: Buffer) => void): Promise<void> {
    const bytes = readFileSync(new URL(name, CORPUS));
    damage(bytes);
    const path = join(folder, name.replace('/', '-'));
    writeFileSync(path, bytes);
    const reader = await openVectors(await openInput(path), {
      dataset: undefined,
      rowsPerBatch: 3,
    });
    for await (const { rowCount } of reader.batches(0)) assert.ok(rowCount > 0);
  }

  const isRefusal = (kind: string) => (error: unknown) =>
    error instanceof ReadError && error.message.includes(`invalid ${kind}: `);

  it('if the Parquet decoder traps in one of its own callbacks', () => {
    const bytes = readFileSync(new URL('parquet/plain.parquet', CORPUS));
    bytes[4] = 255;
    const path = join(folder, 'trap.parquet');
    writeFileSync(path, bytes);
    // The test runner would report the exception of the callback as a failure of the test.
    const found = spawnSync(process.execPath, ['--input-type=module', '--eval', READ, path], {
      encoding: 'utf8',
    });
    assert.match(
      found.stdout,
      /^ReadError: .*trap\.parquet: invalid Parquet: unreachable\n$/,
      found.stderr,
    );
    assert.equal(found.status, 0);
  });

  it('if the type of an HDF5 dataset cannot be read', async () => {
    const damage = (bytes: Buffer) => bytes.fill(0, 882, 889);
    await assert.rejects(read('hdf5/plain.hdf5', damage), isRefusal('HDF5'));
  });
});
