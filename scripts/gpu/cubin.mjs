// Reads what nvcc says about kernels: cubins, which are ELF files with a section .text.SYMBOL for each
// kernel, and the figures that `ptxas -v` prints.
//
// Instructions are counted without a disassembler: each takes 16 bytes from compute capability 7.0 on,
// so that the length of a kernel's section says how many there are, without the NOPs that fill it up.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const INSTRUCTION_BYTES = 16;
/** The operation of an instruction: its lowest twelve bits. */
const OPERATION_MASK = 0xfff;
const NOP = 0x918;
const SECTION_PREFIX = '.text.';

/**
 * The kernels of a cubin with their instructions, without the NOPs at the end.
 *
 * @param {Buffer} file
 * @returns {{ symbol: string, instructions: number }[]}
 */
export function kernelsOfCubin(file) {
  if (file.subarray(0, 5).toString('latin1') !== '\x7fELF\x02') {
    throw new Error('a cubin is a 64-bit ELF file; this is not one');
  }
  const tableAt = Number(file.readBigUInt64LE(0x28));
  const headerBytes = file.readUInt16LE(0x3a);
  const sectionCount = file.readUInt16LE(0x3c);
  const sections = Array.from({ length: sectionCount }, (_, i) => {
    const at = tableAt + i * headerBytes;
    const from = Number(file.readBigUInt64LE(at + 0x18));
    const byteCount = Number(file.readBigUInt64LE(at + 0x20));
    return { nameAt: file.readUInt32LE(at), bytes: file.subarray(from, from + byteCount) };
  });
  const names = sections[file.readUInt16LE(0x3e)].bytes;
  return sections.flatMap(({ nameAt, bytes }) => {
    const name = names.toString('latin1', nameAt, names.indexOf(0, nameAt));
    if (!name.startsWith(SECTION_PREFIX)) return [];
    return [{ symbol: name.slice(SECTION_PREFIX.length), instructions: instructionCount(bytes) }];
  });
}

function instructionCount(code) {
  let count = code.length / INSTRUCTION_BYTES;
  while (count > 0 && operationAt(code, count - 1) === NOP) count--;
  return count;
}

function operationAt(code, index) {
  return code.readUInt16LE(index * INSTRUCTION_BYTES) & OPERATION_MASK;
}

/**
 * The figures of each kernel for one architecture, by symbol, in what `ptxas -v` has printed.
 *
 * @param {string} log
 * @param {string} target such as sm_90a
 * @returns {Map<string, { registers: number, spilledBytes: number, sharedBytes: number }>}
 */
export function kernelsOfLog(log, target) {
  const figures = new Map();
  for (const part of log.split("Compiling entry function '").slice(1)) {
    const [, symbol, compiledFor] = /^([^']*)' for '(\w+)'/.exec(part) ?? [];
    if (compiledFor !== target) continue;
    const number = (pattern) => Number(pattern.exec(part)?.[1] ?? 0);
    figures.set(symbol, {
      registers: number(/Used (\d+) registers/),
      spilledBytes: number(/(\d+) bytes spill stores/),
      sharedBytes: number(/(\d+) bytes smem/),
    });
  }
  return figures;
}

/**
 * The figures of all kernels of a source, for each architecture that it was compiled for.
 *
 * @param {string} folder where nvcc has kept its cubins
 * @param {string} log what it has printed
 * @returns {{ symbol: string, arch: string, instructions: number, registers: number, spilledBytes: number,
 *   sharedBytes: number }[]}
 */
export function figuresOfKernels(folder, log) {
  const targets = new Set([...log.matchAll(/ for 'sm_(\w+)'/g)].map(([, arch]) => arch));
  const cubins = readdirSync(folder).filter((name) => name.endsWith('.cubin'));
  return [...targets].flatMap((arch) => {
    // The only one has no architecture in its name.
    const found = cubins.length === 1 ? cubins : cubins.filter((name) => isFor(name, arch));
    if (found.length !== 1) throw new Error(`nvcc has kept ${cubins}, expected one for ${arch}`);
    const figures = kernelsOfLog(log, `sm_${arch}`);
    return kernelsOfCubin(readFileSync(join(folder, found[0]))).map((kernel) => ({
      ...kernel,
      arch,
      ...figures.get(kernel.symbol),
    }));
  });
}

function isFor(name, arch) {
  return name.endsWith(`.compute_${arch}.cubin`) || name.endsWith(`.sm_${arch}.cubin`);
}
