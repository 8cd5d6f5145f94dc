// The figures of GPU kernels that CI reports are read from cubins and from what ptxas prints.

import assert from 'node:assert/strict';
import { test } from 'node:test';

interface Cubins {
  kernelsOfCubin(file: Buffer): { symbol: string; instructions: number }[];
  kernelsOfLog(
    log: string,
    target: string,
  ): Map<string, { registers: number; spilledBytes: number; sharedBytes: number }>;
}
/** The compiled test is at dist/test/kernels. */
const script = new URL('../../../scripts/gpu/cubin.mjs', import.meta.url);
const { kernelsOfCubin, kernelsOfLog } = (await import(script.href)) as Cubins;

/** Code of 16 bytes per instruction with these operations. */
function code(...operations: number[]): Buffer {
  const bytes = Buffer.alloc(16 * operations.length, 0xff);
  operations.forEach((operation, i) => {
    bytes.writeUInt16LE(0x7000 | operation, 16 * i);
  });
  return bytes;
}

/** A 64-bit ELF file with these sections; the last one has their names. */
function elf(contents: Record<string, Buffer>): Buffer {
  const names = ['', ...Object.keys(contents), '.shstrtab'];
  const text = Buffer.from(names.map((name) => `${name}\0`).join(''));
  const parts = [...Object.values(contents), text];
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02', 'latin1');
  const tableAt = header.length + parts.reduce((sum, part) => sum + part.length, 0);
  header.writeBigUInt64LE(BigInt(tableAt), 0x28);
  header.writeUInt16LE(64, 0x3a);
  header.writeUInt16LE(parts.length + 1, 0x3c);
  header.writeUInt16LE(parts.length, 0x3e);
  let from = header.length;
  const table = parts.map((part, i) => {
    const entry = Buffer.alloc(64);
    entry.writeUInt32LE(text.indexOf(`\0${names[i + 1]}\0`) + 1, 0);
    entry.writeBigUInt64LE(BigInt(from), 0x18);
    entry.writeBigUInt64LE(BigInt(part.length), 0x20);
    from += part.length;
    return entry;
  });
  return Buffer.concat([header, ...parts, Buffer.alloc(64), ...table]);
}

test('instructions of kernels are counted without the NOPs that fill sections up', () => {
  const nop = 0x918;
  const file = elf({
    '.text.scan': code(0x981, nop, 0x223, 0x94d, nop, nop),
    '.nv.info.scan': code(0x981),
    '.text.prune': code(0x94d),
  });
  assert.deepEqual(kernelsOfCubin(file), [
    { symbol: 'scan', instructions: 4 },
    { symbol: 'prune', instructions: 1 },
  ]);
  assert.throws(() => kernelsOfCubin(Buffer.from('PK')), /64-bit ELF/);
});

test('registers, spills and shared memory are those that ptxas prints for each kernel and architecture', () => {
  const log = [
    "ptxas info    : Compiling entry function 'scan' for 'sm_90a'",
    'ptxas info    : Function properties for scan',
    '    64 bytes stack frame, 60 bytes spill stores, 56 bytes spill loads',
    'ptxas info    : Used 128 registers, used 1 barriers',
    "ptxas info    : Compiling entry function 'prune' for 'sm_90a'",
    '    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads',
    'ptxas info    : Used 53 registers, used 1 barriers, 1160 bytes smem',
    "ptxas info    : Compiling entry function 'scan' for 'sm_90'",
    'ptxas info    : Used 99 registers, used 1 barriers',
  ].join('\n');
  assert.deepEqual(
    [...kernelsOfLog(log, 'sm_90a')],
    [
      ['scan', { registers: 128, spilledBytes: 60, sharedBytes: 0 }],
      ['prune', { registers: 53, spilledBytes: 0, sharedBytes: 1160 }],
    ],
  );
});
