// Reads NumPy's .npz archives: zip files with a .npy file for each array, stored or deflated. One array is read, like a
// file of its own.

import { configure, ERR_EOCDR_NOT_FOUND, type FileEntry, Reader, ZipReader } from '@zip.js/zip.js';
import { printable } from '../common/printable.js';
import type { FilePart } from './column-major.js';
import { headOf, type InputSource, type RandomFile, skipBytes } from './input-source.js';
import { listNames, noSuchName } from './names.js';
import { openNpy } from './npy-file.js';
import { ReadError } from './read-error.js';
import type { ReaderOptions } from './reader-options.js';
import type { RowReader } from './row-batch.js';

const ARRAY_SUFFIX = '.npy';

/**
 * Throws ReadError when the archive is damaged, lacks the requested array, or holds several arrays and none was
 * requested.
 */
export async function openNpz(source: InputSource, options: ReaderOptions): Promise<RowReader> {
  const { name } = source;
  const file = source.file!;
  // The workers of the library would need another file of the program.
  configure({ useWebWorkers: false });
  const entries = await wrapErrors(name, () =>
    new ZipReader(new FileReader(file), { checkOverlappingEntry: true }).getEntries(),
  );
  const names = entries.map(({ filename }) => filename);
  const twice = names.find((each, at) => names.indexOf(each) !== at);
  if (twice !== undefined) throw damaged(name, `it has two members ${printable(twice)}`);
  const chosen = chooseArray(name, names, options.dataset);
  const entry = entries.find(({ filename }) => filename === chosen) as FileEntry;
  const member = `${name}:${printable(chosen)}`;
  const { encrypted, compressionMethod } = entry;
  if (encrypted) throw new ReadError(`${member}: the member is encrypted`);
  if (compressionMethod !== STORED && compressionMethod !== DEFLATED) {
    const found = `found compression method ${compressionMethod}`;
    throw new ReadError(`${member}: ${found}, expected none or deflate`);
  }
  const chunks = (start = 0) => skipBytes(contentOf(member, entry), start);
  const head = await headOf(chunks());
  const content: InputSource = {
    name: member,
    byteCount: undefined,
    contentBytes: entry.uncompressedSize,
    isCompressed: compressionMethod !== STORED,
    head,
    bytesRead: () => source.bytesRead(),
    chunks,
    file: undefined,
  };
  const part = content.isCompressed ? undefined : await partOf(file, entry, chunks);
  return await openNpy(content, options, part);
}

const STORED = 0;
const DEFLATED = 8;
/** Bytes of a member's local header before its name. */
const LOCAL_BYTES = 30;

/** Where in the archive a stored member begins, for arrays whose rows are spread over it. */
async function partOf(
  file: RandomFile,
  { offset }: FileEntry,
  chunks: () => AsyncIterable<Uint8Array>,
): Promise<FilePart> {
  const { buffer, byteOffset } = await file.read(offset, offset + LOCAL_BYTES);
  const local = new DataView(buffer, byteOffset, LOCAL_BYTES);
  const start = offset + LOCAL_BYTES + local.getUint16(26, true) + local.getUint16(28, true);
  // The checksum covers all bytes, so only a complete read verifies it.
  const check = async () => {
    for await (const _ of chunks());
  };
  return { file, start, check };
}

/** Gives the library access to the bytes of the archive. */
class FileReader extends Reader<RandomFile> {
  readonly #file: RandomFile;

  constructor(file: RandomFile) {
    super(file);
    this.#file = file;
    this.size = file.byteCount;
  }

  override readUint8Array(start: number, byteCount: number): Promise<Uint8Array<ArrayBuffer>> {
    const end = Math.min(start + byteCount, this.#file.byteCount);
    return this.#file.read(start, end) as Promise<Uint8Array<ArrayBuffer>>;
  }
}

/**
 * The content of a member. Throws ReadError when it is damaged; damage that only the checksum shows is found at the
 * end, so a caller that stops earlier holds unverified bytes.
 */
async function* contentOf(member: string, entry: FileEntry): AsyncGenerator<Uint8Array> {
  const { readable: content, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const abort = new AbortController();
  const options = { checkSignature: true, signal: abort.signal };
  let byteCount = 0;
  const writing = entry.getData(writable, options);
  const failed = new Promise<never>((_, reject) => writing.catch(reject));
  // Handles a failure after the caller has stopped.
  failed.catch(() => {});
  const reader = content.getReader();
  try {
    while (true) {
      const next = await wrapErrors(member, () => Promise.race([reader.read(), failed]));
      if (next.done) break;
      byteCount += next.value.length;
      yield next.value;
    }
    await wrapErrors(member, () => writing);
  } finally {
    abort.abort();
    void reader.cancel().catch(() => {});
  }
  if (byteCount === entry.uncompressedSize) return;
  throw damaged(
    member,
    `found ${byteCount} bytes, expected ${entry.uncompressedSize} as the archive states`,
  );
}

function chooseArray(file: string, members: readonly string[], wanted: string | undefined): string {
  const names = members
    .filter((name) => name.endsWith(ARRAY_SUFFIX))
    .map((name) => name.slice(0, -ARRAY_SUFFIX.length));
  const [first] = names;
  if (first === undefined) throw new ReadError(`${file}: the archive contains no array (.npy)`);
  if (wanted === undefined && names.length > 1) {
    throw new ReadError(
      `${file}: found ${names.length} arrays (arrays: ${listNames(names)}); choose one with --dataset`,
      { isUsage: true },
    );
  }
  const chosen = wanted ?? first;
  if (names.includes(chosen)) return chosen + ARRAY_SUFFIX;
  throw noSuchName(file, 'array', { name: chosen, option: '--dataset', names });
}

/** Adds the name of the archive to errors of the library. */
async function wrapErrors<Value>(name: string, read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof ReadError) throw cause;
    const { message } = cause as Error;
    const isCut = message === ERR_EOCDR_NOT_FOUND;
    throw damaged(name, isCut ? 'it has no end record, so it is probably cut off' : message, cause);
  }
}

function damaged(name: string, reason: string, cause?: unknown): ReadError {
  return new ReadError(`${name}: not a valid zip archive: ${reason}`, { cause });
}
