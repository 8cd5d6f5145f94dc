// NumPy archives and headers with false statements: each one is an error instead of wrong numbers.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  Uint8ArrayReader,
  Uint8ArrayWriter,
  ZipWriter,
  type ZipWriterAddDataOptions,
} from '@zip.js/zip.js';
import { openInput } from '../../src/cli/files/file-source.js';
import { openVectors } from '../../src/readers/formats.js';
import { makeFolder } from '../cli/command.js';

let folder: Awaited<ReturnType<typeof makeFolder>>;
before(async () => {
  folder = await makeFolder();
});
after(() => folder.remove());

async function read(name: string, bytes: Uint8Array, dataset?: string): Promise<number[]> {
  const path = join(folder.path, name);
  await writeFile(path, bytes);
  const reader = await openVectors(await openInput(path), { dataset, rowsPerBatch: 2 });
  const values: number[] = [];
  for await (const batch of reader.batches(0)) values.push(...batch.values);
  return values;
}

async function refuses(name: string, bytes: Uint8Array, message: RegExp, dataset?: string) {
  await assert.rejects(read(name, bytes, dataset), (error: Error) => {
    assert.equal(error.name, 'ReadError', error.stack);
    assert.ok(error.message.startsWith(join(folder.path, name)), error.message);
    assert.match(error.message, message);
    return true;
  });
}

interface ArrayOptions {
  readonly shape?: string;
  readonly order?: string;
  readonly header?: string;
}

const NUMBERS = [1, 2, 3, 4, 5, 6];

function npy({ shape = '3, 2', order = 'False', header }: ArrayOptions = {}): Buffer {
  const text = header ?? `{'descr': '<f4', 'fortran_order': ${order}, 'shape': (${shape}), }`;
  const length = Buffer.alloc(2);
  length.writeUInt16LE(118);
  const start = Buffer.concat([Buffer.from('\x93NUMPY\x01\x00', 'latin1'), length]);
  const values = Buffer.from(new Float32Array(NUMBERS).buffer);
  return Buffer.concat([start, Buffer.from(`${text.padEnd(117)}\n`), values]);
}

interface Member extends ZipWriterAddDataOptions {
  readonly name: string;
  readonly content: Buffer;
}

async function zip(...members: readonly Member[]): Promise<Buffer> {
  const writer = new ZipWriter(new Uint8ArrayWriter(), { useWebWorkers: false });
  for (const { name, content, ...options } of members) {
    await writer.add(name, new Uint8ArrayReader(content), options);
  }
  return Buffer.from(await writer.close());
}

const A: Member = { name: 'a.npy', content: npy(), level: 0, dataDescriptor: false };
const B: Member = { name: 'b.npy', content: npy() };
const FORTRAN: Member = { ...A, name: 'f.npy', content: npy({ order: 'True' }) };

describe('an archive', () => {
  it('yields stored and deflated arrays, also with zip64 fields, data descriptors and a comment', async () => {
    for (const options of [{}, { zip64: true }, { dataDescriptor: true }]) {
      const bytes = await zip(
        { ...A, ...options },
        { ...B, ...options },
        { ...FORTRAN, ...options },
      );
      assert.deepEqual(await read('good.npz', bytes, 'a'), NUMBERS);
      assert.deepEqual(await read('good.npz', bytes, 'b'), NUMBERS);
      assert.deepEqual(await read('good.npz', bytes, 'f'), [1, 4, 2, 5, 3, 6]);
      bytes.writeUInt16LE(40, bytes.length - 2);
      const commented = Buffer.concat([bytes, Buffer.alloc(40)]);
      assert.deepEqual(await read('commented.npz', commented, 'b'), NUMBERS);
    }
  });

  /** Offset of the first number of the array. */
  const valuesAt = (bytes: Buffer) =>
    bytes.indexOf(Buffer.from(Float32Array.of(...NUMBERS).buffer));
  const entryAt = (bytes: Buffer) => bytes.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
  const lies: readonly [string, readonly Member[], (bytes: Buffer) => unknown, RegExp, string?][] =
    [
      ['a changed value', [A], (bytes) => bytes.writeUInt8(7, valuesAt(bytes)), /Invalid CRC32/],
      [
        'a changed value in Fortran order',
        [FORTRAN],
        (bytes) => bytes.writeUInt8(7, valuesAt(bytes)),
        /Invalid CRC32/,
      ],
      [
        'another checksum',
        [B],
        (bytes) => bytes.writeUInt32LE(1, entryAt(bytes) + 16),
        /not a valid zip archive: /,
      ],
      [
        'another length',
        [B],
        (bytes) => bytes.writeUInt32LE(140, entryAt(bytes) + 24),
        /not a valid zip archive: /,
      ],
      [
        'an offset that is not of a member',
        [A],
        (bytes) => bytes.writeUInt32LE(10, entryAt(bytes) + 42),
        /not a valid zip archive: /,
      ],
      [
        'an offset beyond the file',
        [A],
        (bytes) => bytes.writeUInt32LE(0xfffffff0, entryAt(bytes) + 42),
        /not a valid zip archive: /,
      ],
      [
        'an encrypted array',
        [{ ...A, password: 'x', encryptionStrength: 3 }],
        () => {},
        /a\.npy: the member is encrypted/,
      ],
      [
        'another compression',
        [A],
        (bytes) => bytes.writeUInt16LE(14, entryAt(bytes) + 10),
        /found compression method 14, expected none or deflate/,
      ],
      ['no array', [{ ...A, name: 'a.txt' }], () => {}, /the archive contains no array/],
      [
        'names with control characters',
        [{ ...A, name: 'a\x1b[2J.npy' }, B],
        () => {},
        /found 2 arrays \(arrays: a·\[2J, b\)/,
      ],
      [
        'a header that states more values than it holds',
        [{ ...B, name: 'a.npy', content: npy({ shape: '4, 2' }) }],
        () => {},
        /found 152 bytes, expected 160 for 4 vectors of 2 float32/,
      ],
    ];
  for (const [what, members, lie, message, dataset] of lies) {
    it(`with ${what} is refused`, async () => {
      const bytes = await zip(...members);
      lie(bytes);
      await refuses('lie.npz', bytes, message, dataset);
    });
  }

  it('cut anywhere is refused', async () => {
    const bytes = await zip(A, B);
    for (let length = 4; length < bytes.length; length += 7) {
      await refuses('cut.npz', bytes.subarray(0, length), /not a valid zip archive/, 'a');
    }
    await refuses(
      'cut.npz',
      bytes.subarray(0, -9),
      /no end record, so it is probably cut off/,
      'a',
    );
  });
});

describe('the header of an array', () => {
  const headers: readonly [string, ArrayOptions, RegExp][] = [
    ['a negative number of vectors', { shape: '-3, 2' }, /found the shape \(-3, 2\), expected/],
    ['a negative dimension', { shape: '3, -2' }, /found the shape \(3, -2\), expected/],
    ['a fraction', { shape: '3.2' }, /found the shape \(3\.2\), expected/],
    ['no dimension', { shape: '6,' }, /found the shape \(6\), expected/],
    ['three dimensions', { shape: '1, 3, 2' }, /found the shape \(1, 3, 2\), expected/],
    ['vectors without values', { shape: '3, 0' }, /a dimension from 1 to 1000000/],
    ['too many values', { shape: '1, 1000001' }, /a dimension from 1 to 1000000/],
    ['too many vectors', { shape: '99999999999999999, 2' }, /found the shape \(9{17}, 2\)/],
    ['more vectors than bytes', { shape: '4, 2' }, /found 152 bytes, expected 160/],
    ['fewer vectors than bytes', { shape: '2, 2' }, /found 152 bytes, expected 144/],
    [
      'more vectors than bytes in Fortran order',
      { shape: '4, 2', order: 'True' },
      /found 152 bytes, expected 160/,
    ],
    ['another order', { order: 'Maybe' }, /the header has no fortran_order/],
    ['nothing', { header: '' }, /unsupported type/],
  ];
  for (const [what, options, message] of headers) {
    it(`with ${what} is refused`, () => refuses('lie.npy', npy(options), message));
  }

  it('with more vectors than a compressed file has is refused at its end', async () => {
    const packed = gzipSync(npy({ shape: '900000, 2' }));
    await refuses('lie.npy.gz', packed, /row 4: the file ends within this vector/);
  });

  it('may have the long integers of Python 2', async () => {
    assert.deepEqual(await read('long.npy', npy({ shape: '3L, 2L' })), NUMBERS);
  });
});
