// Archives and headers of NumPy that lie: every statement that does not hold is an error, not wrong numbers.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { crc32, deflateRawSync, gzipSync } from 'node:zlib';
import { openVectors } from '../../../src/cli/readers/formats.js';
import { openSource } from '../../../src/cli/readers/source.js';
import { makeFolder } from '../command.js';

let folder: Awaited<ReturnType<typeof makeFolder>>;
before(async () => {
  folder = await makeFolder();
});
after(() => folder.remove());

async function read(name: string, bytes: Uint8Array, dataset?: string): Promise<number[]> {
  const path = join(folder.path, name);
  await writeFile(path, bytes);
  const reader = await openVectors(await openSource(path), { dataset, rowsPerBatch: 2 });
  const values: number[] = [];
  for await (const batch of reader.batches(0)) values.push(...batch.values);
  return values;
}

async function refuses(name: string, bytes: Uint8Array, message: RegExp, dataset?: string) {
  await assert.rejects(read(name, bytes, dataset), (error: Error) => {
    assert.equal(error.name, 'CliError', error.stack);
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

interface Member {
  readonly name: string;
  readonly content: Buffer;
  readonly isDeflated?: boolean;
}

interface Archive {
  bytes: Buffer;
  /** Offsets of the local headers, the directory's entries, and the end record. */
  readonly locals: number[];
  readonly entries: number[];
  readonly end: number;
}

/** With the numbers of four bytes in the extra fields and the large end record if `isLarge`. */
function zip(members: readonly Member[], isLarge = false): Archive {
  const parts: Buffer[] = [];
  const locals: number[] = [];
  let at = 0;
  const add = (...buffers: Buffer[]) => {
    for (const buffer of buffers) {
      parts.push(buffer);
      at += buffer.length;
    }
  };
  const directory = members.map(({ name, content, isDeflated = false }) => {
    const nameBytes = Buffer.from(name);
    const data = isDeflated ? deflateRawSync(content) : content;
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(isDeflated ? 8 : 0, 8);
    local.writeUInt16LE(nameBytes.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(isDeflated ? 8 : 0, 10);
    entry.writeUInt32LE(crc32(content), 16);
    entry.writeUInt16LE(nameBytes.length, 28);
    const numbers = [content.length, data.length, at];
    const extra = Buffer.alloc(isLarge ? 28 : 0);
    if (isLarge) {
      entry.writeUInt16LE(extra.length, 30);
      extra.writeUInt16LE(1, 0);
      extra.writeUInt16LE(24, 2);
    }
    for (const [index, field] of [24, 20, 42].entries()) {
      entry.writeUInt32LE(isLarge ? 0xffffffff : numbers[index]!, field);
      if (isLarge) extra.writeBigUInt64LE(BigInt(numbers[index]!), 4 + index * 8);
    }
    locals.push(at);
    add(local, nameBytes, data);
    return Buffer.concat([entry, nameBytes, extra]);
  });
  const directoryAt = at;
  const entries = directory.map((entry) => {
    add(entry);
    return at - entry.length;
  });
  const directoryBytes = at - directoryAt;
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  if (isLarge) {
    const large = Buffer.alloc(56);
    large.writeUInt32LE(0x06064b50, 0);
    large.writeBigUInt64LE(44n, 4);
    large.writeBigUInt64LE(BigInt(members.length), 32);
    large.writeBigUInt64LE(BigInt(directoryBytes), 40);
    large.writeBigUInt64LE(BigInt(directoryAt), 48);
    const locator = Buffer.alloc(20);
    locator.writeUInt32LE(0x07064b50, 0);
    locator.writeBigUInt64LE(BigInt(at), 8);
    add(large, locator);
  }
  const count = isLarge ? 0xffff : members.length;
  end.writeUInt16LE(count, 8);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(isLarge ? 0xffffffff : directoryBytes, 12);
  end.writeUInt32LE(isLarge ? 0xffffffff : directoryAt, 16);
  add(end);
  return { bytes: Buffer.concat(parts), locals, entries, end: at - end.length };
}

const A: Member = { name: 'a.npy', content: npy() };
const B: Member = { name: 'b.npy', content: npy(), isDeflated: true };
const FORTRAN: Member = { name: 'f.npy', content: npy({ order: 'True' }) };

describe('an archive', () => {
  it('gives stored and deflated arrays, with large numbers and a comment as well', async () => {
    for (const isLarge of [false, true]) {
      const { bytes, end } = zip([A, B, FORTRAN], isLarge);
      assert.deepEqual(await read('good.npz', bytes, 'a'), NUMBERS);
      assert.deepEqual(await read('good.npz', bytes, 'b'), NUMBERS);
      assert.deepEqual(await read('good.npz', bytes, 'f'), [1, 4, 2, 5, 3, 6]);
      // A comment that looks like an end record.
      const comment = Buffer.alloc(40);
      comment.writeUInt32LE(0x06054b50, 3);
      bytes.writeUInt16LE(comment.length, end + 20);
      const commented = Buffer.concat([bytes, comment]);
      assert.deepEqual(await read('commented.npz', commented, 'b'), NUMBERS);
    }
  });

  type Lie = (archive: Archive) => Buffer | undefined;
  const lies: readonly [string, readonly Member[], Lie, RegExp, string?][] = [
    [
      'a changed value',
      [A],
      ({ bytes, locals }) => void bytes.writeUInt8(7, locals[0]! + 30 + 5 + 128),
      /its checksum \(CRC-32\) is [0-9a-f]{8}, expected [0-9a-f]{8}/,
    ],
    [
      'a changed value in Fortran order',
      [FORTRAN],
      ({ bytes, locals }) => void bytes.writeUInt8(7, locals[0]! + 30 + 5 + 128),
      /its checksum \(CRC-32\) is/,
    ],
    [
      'another checksum',
      [B],
      ({ bytes, entries }) => void bytes.writeUInt32LE(1, entries[0]! + 16),
      /its checksum \(CRC-32\) is [0-9a-f]{8}, expected 00000001/,
    ],
    [
      'a deflated array that is longer than stated',
      [B],
      ({ bytes, entries }) => void bytes.writeUInt32LE(140, entries[0]! + 24),
      /found more bytes, expected the 140 that are stated/,
    ],
    [
      'a deflated array that is shorter than stated',
      [B],
      ({ bytes, entries }) => void bytes.writeUInt32LE(900, entries[0]! + 24),
      /found 152 bytes, expected the 900 that are stated/,
    ],
    [
      'a stored array of two lengths',
      [A],
      ({ bytes, entries }) => void bytes.writeUInt32LE(200, entries[0]! + 24),
      /152 bytes are stored, but 200 are stated/,
    ],
    [
      'an array beyond the directory',
      [A],
      ({ bytes, entries }) => {
        bytes.writeUInt32LE(170, entries[0]! + 20);
        bytes.writeUInt32LE(170, entries[0]! + 24);
      },
      /the bytes of a\.npy overlap what follows/,
    ],
    [
      'overlapping arrays',
      [A, FORTRAN],
      ({ bytes, entries }) => void bytes.writeUInt32LE(10, entries[1]! + 42),
      /the bytes of a\.npy overlap what follows/,
      'f',
    ],
    [
      'two arrays in one place',
      [A, { ...A, name: 'b.npy' }],
      ({ bytes, entries }) => void bytes.writeUInt32LE(0, entries[1]! + 42),
      /overlap what follows/,
      'a',
    ],
    [
      'a local header that pushes the array into the next one',
      [A, B],
      ({ bytes, locals }) => void bytes.writeUInt16LE(9, locals[0]! + 28),
      /a\.npy: .*its bytes overlap what follows/,
      'a',
    ],
    [
      'a local header of another name',
      [A],
      ({ bytes, locals }) => void bytes.write('x', locals[0]! + 30),
      /its header differs from the directory/,
    ],
    [
      'an offset that is not of a local header',
      [{ ...A, name: 'b.npy' }, A],
      ({ bytes, entries, locals }) => void bytes.writeUInt32LE(locals[1]! - 3, entries[1]! + 42),
      /overlap what follows|its header differs/,
      'a',
    ],
    [
      'an offset beyond the file',
      [A],
      ({ bytes, entries }) => void bytes.writeUInt32LE(0xfffffff0, entries[0]! + 42),
      /overlap what follows/,
    ],
    [
      'a large number that is missing',
      [A],
      ({ bytes, entries }) => void bytes.writeUInt32LE(0xffffffff, entries[0]! + 42),
      /overlap what follows/,
    ],
    ['two arrays of one name', [A, A], () => undefined, /it has two members a\.npy/],
    [
      'an encrypted array',
      [A],
      ({ bytes, entries }) => void bytes.writeUInt16LE(1, entries[0]! + 8),
      /a\.npy: the member is encrypted/,
    ],
    [
      'another compression',
      [A],
      ({ bytes, entries }) => void bytes.writeUInt16LE(14, entries[0]! + 10),
      /found compression method 14, expected none or deflate/,
    ],
    [
      'a directory with too few entries',
      [A],
      ({ bytes, end }) => void bytes.writeUInt16LE(2, end + 10),
      /its directory has 1 members, expected the 2 of the end record/,
    ],
    [
      'a name that is longer than the directory',
      [A],
      ({ bytes, entries }) => void bytes.writeUInt16LE(60_000, entries[0]! + 28),
      /entry 1 of its directory is cut off/,
    ],
    [
      'a directory that is none',
      [A],
      ({ bytes, entries }) => void bytes.writeUInt32LE(0, entries[0]!),
      /entry 1 of its directory is not valid/,
    ],
    [
      'a directory beyond the file',
      [A],
      ({ bytes, end }) => void bytes.writeUInt32LE(0xfffffff0, end + 16),
      /its directory is not where the end record says/,
    ],
    [
      'a directory of gigabytes',
      [A],
      ({ bytes, end }) => void bytes.writeUInt32LE(0xfffffff0, end + 12),
      /its directory has 4294967280 bytes, expected at most 64000000/,
    ],
    [
      'a part of an archive',
      [A],
      ({ bytes, end }) => void bytes.writeUInt16LE(1, end + 4),
      /found one part of an archive, expected all in one file/,
    ],
    [
      'bytes after the end record',
      [A],
      ({ bytes }) => Buffer.concat([bytes, Buffer.from('x')]),
      /it has no end record, so it is probably cut off/,
    ],
    ['no array', [{ ...A, name: 'a.txt' }], () => undefined, /the archive contains no array/],
    [
      'names with control characters',
      [{ ...A, name: 'a\x1b[2J.npy' }, B],
      () => undefined,
      /found 2 arrays \(arrays: a·\[2J, b\)/,
    ],
    [
      'a header that states more values than there are',
      [{ name: 'a.npy', content: npy({ shape: '4, 2' }), isDeflated: true }],
      () => undefined,
      /found 152 bytes, expected 160 for 4 vectors of 2 float32/,
    ],
  ];
  for (const [what, members, lie, message, dataset] of lies) {
    it(`with ${what} is refused`, async () => {
      const archive = zip(members);
      await refuses('lie.npz', lie(archive) ?? archive.bytes, message, dataset);
    });
  }

  it('with a large end record that is not where it says is refused', async () => {
    const { bytes, end } = zip([A], true);
    const moved = Buffer.from(bytes);
    moved.writeBigUInt64LE(BigInt(end - 20 - 55), end - 20 + 8);
    await refuses('moved.npz', moved, /its end record is not where the archive says/);
    const beyond = Buffer.from(bytes);
    beyond.writeBigUInt64LE(2n ** 63n, end - 20 + 8);
    await refuses('beyond.npz', beyond, /its end record is not where the archive says/);
  });

  it('cut anywhere is refused', async () => {
    const { bytes } = zip([A, B]);
    for (let length = 4; length < bytes.length; length += 7) {
      await refuses('cut.npz', bytes.subarray(0, length), /not a valid zip archive/, 'a');
    }
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
