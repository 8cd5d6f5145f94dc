// Writes a directory as a reproducible .tar.gz: entries are sorted, timestamps are fixed and root owns
// everything. Supports files below 8 GB and names that fit the ustar format.

import { createReadStream, createWriteStream, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';

const BLOCK_BYTES = 512;

/** `top` is the archive's top-level directory; `seconds` is the Unix timestamp of every entry. */
export async function writeArchive(folder, { file, top, seconds }) {
  const gzip = createGzip({ level: constants.Z_BEST_COMPRESSION });
  const entries = Readable.from(readEntries(folder, top, seconds), { objectMode: false });
  await pipeline(entries, gzip, createWriteStream(file));
}

async function* readEntries(folder, top, seconds) {
  const names = readdirSync(folder, { recursive: true }).sort();
  yield header(`${top}/`, { mode: 0o755, byteCount: 0, seconds });
  for (const name of names) {
    const path = join(folder, name);
    const stat = lstatSync(path);
    if (stat.isDirectory()) {
      yield header(`${top}/${name}/`, { mode: 0o755, byteCount: 0, seconds });
      continue;
    }
    if (!stat.isFile()) throw new Error(`${name} is neither a file nor a directory`);
    const mode = stat.mode & 0o100 ? 0o755 : 0o644;
    yield header(`${top}/${name}`, { mode, byteCount: stat.size, seconds });
    yield* createReadStream(path);
    yield Buffer.alloc((BLOCK_BYTES - (stat.size % BLOCK_BYTES)) % BLOCK_BYTES);
  }
  yield Buffer.alloc(2 * BLOCK_BYTES);
}

function header(path, { mode, byteCount, seconds }) {
  const block = Buffer.alloc(BLOCK_BYTES);
  const [prefix, name] = splitPath(path);
  const octal = (value, digits) => `${value.toString(8).padStart(digits, '0')}\0`;
  block.write(name, 0);
  block.write(octal(mode, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(byteCount, 11), 124);
  block.write(octal(seconds, 11), 136);
  block.write(' '.repeat(8), 148);
  block.write(path.endsWith('/') ? '5' : '0', 156);
  block.write('ustar\x0000', 257);
  block.write('root', 265);
  block.write('root', 297);
  block.write(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** Splits a path into the ustar prefix (at most 155 bytes) and name (at most 100 bytes). */
function splitPath(path) {
  if (Buffer.byteLength(path) <= 100) return ['', path];
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (name !== '' && Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100) {
      return [prefix, name];
    }
  }
  throw new Error(`the path ${path} is too long for the archive`);
}
