// The disk store: contract, a kill, format versions, files of blobs. More kills, full disks and long logs have their
// own files.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { access, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { SagittaError } from '../../src/common/errors.js';
import { BASE_SEED, FrameBuilder, NO_FRAME } from '../../src/storage/frame.js';
import { openStore } from '../../src/storage/open-store.js';
import { storeContract } from './contract.js';
import { diskHarness, makeDirectory, openIn } from './directories.js';
import { surviveKills } from './survive-kills.js';

storeContract('disk', diskHarness);

describe('disk store: durability', () => {
  it('keeps every acknowledged commit when its process is killed', async () => {
    await surviveKills(await makeDirectory(), 1);
  });

  it('rejects a directory of another format with both versions', async () => {
    const directory = await makeDirectory();
    await (await openIn(directory)).close();
    const path = join(directory, 'journal', '00000001.base');
    const builder = new FrameBuilder();
    builder.add({ kind: 'format', version: 99, seed: 0 });
    await writeFile(path, Buffer.concat(builder.finish(NO_FRAME, 0, BASE_SEED).parts));
    for (let i = 0; i < 2; i++) {
      await assert.rejects(openStore({ directory }), {
        code: 'configuration_invalid',
        message: /format version 99.*reads 1/,
      });
    }
  });

  it('ends opening when the service stops, and leaves the directory as it was', async () => {
    const stopping = AbortSignal.abort(new SagittaError('stopping', 'The service is stopping.'));
    const directory = await makeDirectory();
    const store = await openIn(directory);
    await store.commit([{ kind: 'put', key: ['k'], value: Buffer.from('kept') }]);
    await store.close();
    for (const directoryToOpen of [directory, join(directory, 'new')]) {
      await assert.rejects(openStore({ directory: directoryToOpen, stopping }), stopping.reason);
    }
    await assert.rejects(access(join(directory, 'new')), { code: 'ENOENT' });
    const again = await openIn(directory);
    assert.deepEqual(again.get(['k']), new Uint8Array(Buffer.from('kept')));
    await again.close();
  });

  it('does not keep its process running, closed or not', async () => {
    const url = JSON.stringify(new URL('../../src/storage/open-store.js', import.meta.url).href);
    const path = JSON.stringify(await makeDirectory());
    for (const ending of ['', 'await store.close();']) {
      const script = `const { openStore } = await import(${url});
        const store = await openStore({ directory: ${path} });
        await store.commit([{ kind: 'append', log: 'l', sequence: Date.now(), record: Buffer.alloc(9) },
          { kind: 'trim', log: 'l', throughSequence: Date.now() }]);
        store.get(['k']);
        ${ending}`;
      const child = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
        timeout: 60_000,
        encoding: 'utf8',
      });
      assert.equal(child.status, 0, child.stderr);
    }
  });
});

describe('disk store: values', () => {
  it('lists the keys of long values without reading them, one of which is damaged', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory);
    const value = new Uint8Array(1_000).fill(0x55);
    await store.commit([
      { kind: 'put', key: ['k', 'damaged'], value },
      { kind: 'put', key: ['k', 'whole'], value },
    ]);
    await store.close();
    const path = join(directory, 'journal', '00000002.log');
    const bytes = await readFile(path);
    bytes[bytes.indexOf(Buffer.from(value))]! ^= 1;
    await writeFile(path, bytes);
    const again = await openIn(directory);
    assert.deepEqual(
      [...again.list([])].map(({ key }) => key[1]),
      ['damaged', 'whole'],
    );
    assert.throws(() => again.get(['k', 'damaged']), {
      code: 'data_corrupt',
      message: /00000002\.log is damaged: the value "k\/damaged" at offset \d+/,
    });
    assert.equal(again.get(['k', 'whole'])!.byteLength, 1_000);
    await again.close();
  });
});

describe('disk store: blobs', () => {
  it('deletes files of interrupted writes and empty folders when it is opened', async () => {
    const directory = await makeDirectory();
    await (await openIn(directory)).close();
    const folder = join(directory, 'segments', 'c');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, '1.arrow.1.unfinished'), 'half');
    await mkdir(join(directory, 'segments', 'd'));
    await writeFile(join(directory, 'segments', 'd', '2.arrow'), 'whole');
    await writeFile(join(directory, 'segments', 'd', '2.arrow.7.unfinished'), 'half');
    const store = await openIn(directory);
    assert.deepEqual(await store.listBlobs(), ['d/2.arrow']);
    assert.deepEqual(await readdir(join(directory, 'segments', 'd')), ['2.arrow']);
    await assert.rejects(access(folder));
    await store.close();
  });

  it('leaves no file behind when a write fails', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory);
    const failing = function* () {
      yield new Uint8Array(10);
      throw new Error('no more');
    };
    await assert.rejects(store.writeBlob('c/1', failing()), /no more/);
    assert.deepEqual(await readdir(join(directory, 'segments', 'c')), []);
    await store.close();
  });

  it('names the file of a blob that cannot be read', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory);
    const path = join(directory, 'segments', 'c', '1.arrow');
    await mkdir(path, { recursive: true });
    await assert.rejects(store.readBlob('c/1.arrow'), (error: Error & { code: string }) => {
      assert.equal(error.code, 'data_corrupt');
      assert.ok(error.message.includes(path), error.message);
      return true;
    });
    await store.close();
  });
});
