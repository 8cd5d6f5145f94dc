// The file that makes a folder a backup: written last, so that a folder without it is none. It holds
// the checksum of the lmdb file, which has none of its own. Whoever opens the folder as a data
// directory takes it away: from then on the folder changes.

import { open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { SagittaError } from '../common/errors.js';

export const MARKER_FILE = 'backup.json';
const FORMAT_VERSION = 1;

export interface BackupMarker {
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** Of all files but this one. */
  readonly byteLength: number;
  readonly collectionCount: number;
  readonly storeFile: FileDigest;
}

export interface FileDigest {
  readonly byteLength: number;
  /** `crc32:` and eight hexadecimal digits. */
  readonly checksum: string;
}

/** Synced; the folder's entry is the caller's to sync. */
export async function writeMarker(folder: string, marker: BackupMarker): Promise<void> {
  const file = await open(join(folder, MARKER_FILE), 'wx');
  try {
    await file.writeFile(
      `${JSON.stringify({ format_version: FORMAT_VERSION, ...marker }, null, 2)}\n`,
    );
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Undefined for a folder that is no backup. Throws `data_corrupt`, and `configuration_invalid` for a newer format. */
export async function readMarker(folder: string): Promise<BackupMarker | undefined> {
  const path = join(folder, MARKER_FILE);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
  let found: (Partial<BackupMarker> & { format_version?: unknown }) | null;
  try {
    found = JSON.parse(text) as typeof found;
  } catch (cause) {
    throw new SagittaError('data_corrupt', `The file ${path} is damaged: it is not JSON.`, {
      cause,
    });
  }
  if (Number.isInteger(found?.format_version) && found?.format_version !== FORMAT_VERSION) {
    throw new SagittaError(
      'configuration_invalid',
      `The backup ${folder} has format version ${found?.format_version}; this Sagitta reads version ${FORMAT_VERSION}.`,
    );
  }
  if (!isMarker(found)) {
    throw new SagittaError('data_corrupt', `The file ${path} is damaged: members are missing.`);
  }
  const { createdAt, byteLength, collectionCount, storeFile } = found;
  return { createdAt, byteLength, collectionCount, storeFile };
}

export async function removeMarker(folder: string): Promise<void> {
  await rm(join(folder, MARKER_FILE), { force: true });
}

/** Read in pieces that leave the event loop to others. */
const PIECE_BYTES = 1024 * 1024;

export async function digestOfFile(path: string): Promise<FileDigest> {
  const file = await open(path, 'r');
  try {
    const piece = Buffer.alloc(PIECE_BYTES);
    let checksum = 0;
    let byteLength = 0;
    while (true) {
      const { bytesRead } = await file.read(piece, 0, PIECE_BYTES, byteLength);
      if (bytesRead === 0) break;
      checksum = crc32(piece.subarray(0, bytesRead), checksum);
      byteLength += bytesRead;
    }
    return { byteLength, checksum: `crc32:${checksum.toString(16).padStart(8, '0')}` };
  } finally {
    await file.close();
  }
}

function isMarker(value: unknown): value is BackupMarker {
  if (typeof value !== 'object' || value === null) return false;
  const { createdAt, byteLength, collectionCount, storeFile } = value as Partial<BackupMarker>;
  return (
    typeof createdAt === 'string' &&
    Number.isSafeInteger(byteLength) &&
    Number.isSafeInteger(collectionCount) &&
    Number.isSafeInteger(storeFile?.byteLength) &&
    typeof storeFile?.checksum === 'string'
  );
}
