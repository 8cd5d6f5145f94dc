// NumPy's .npz archives: a zip file with a .npy file for each array, stored or deflated. One array is
// read, as a file of its own would be.

import { open } from 'node:fs/promises';
import { CliError, usageError } from '../failure.js';
import { listNames, noSuchName } from '../names.js';
import { printable } from '../table.js';
import { openNpy } from './npy-file.js';
import type { ReadOptions, RowReader } from './row-batch.js';
import { HEAD_BYTES, type InputSource, skipBytes } from './source.js';
import { ZipArchive, type ZipMember } from './zip-archive.js';

const ARRAY_SUFFIX = '.npy';

/** Throws CliError when the archive has no such array, or several and none is named. */
export async function openNpz(source: InputSource, options: ReadOptions): Promise<RowReader> {
  const path = source.path!;
  const handle = await open(path);
  try {
    const archive = await ZipArchive.open({ name: source.name, path, handle });
    const array = chooseArray(source.name, archive.names, options.dataset);
    const member = await archive.member(array);
    const chunks = (start = 0) => skipBytes(archive.contentOf(member), start);
    const place = member.isCompressed
      ? undefined
      : { path, start: member.start, check: () => readAll(chunks()) };
    return await openNpy(await openMember(source, member, chunks), options, place);
  } finally {
    await handle.close();
  }
}

function chooseArray(file: string, members: readonly string[], wanted: string | undefined): string {
  const names = members
    .filter((name) => name.endsWith(ARRAY_SUFFIX))
    .map((name) => name.slice(0, -ARRAY_SUFFIX.length));
  const [first] = names;
  if (first === undefined) throw new CliError(`${file}: the archive contains no array (.npy)`);
  if (wanted === undefined && names.length > 1) {
    throw usageError(
      `${file}: found ${names.length} arrays (arrays: ${listNames(names)}); choose one with --dataset`,
    );
  }
  const chosen = wanted ?? first;
  if (names.includes(chosen)) return chosen + ARRAY_SUFFIX;
  throw noSuchName(file, 'array', { name: chosen, option: '--dataset', names });
}

async function openMember(
  source: InputSource,
  { name, isCompressed, byteCount }: ZipMember,
  chunks: InputSource['chunks'],
): Promise<InputSource> {
  return {
    name: `${source.name}:${printable(name)}`,
    byteCount: undefined,
    contentBytes: byteCount,
    bytesRead: () => 0,
    markRead: source.markRead,
    path: undefined,
    isCompressed,
    head: await headOf(chunks()),
    chunks,
  };
}

async function headOf(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  let head = Buffer.alloc(0);
  for await (const chunk of chunks) {
    head = Buffer.concat([head, chunk]);
    if (head.length >= HEAD_BYTES) break;
  }
  return head.subarray(0, HEAD_BYTES);
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of chunks);
}
