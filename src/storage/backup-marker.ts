// The file that marks a folder as a complete backup. It is written last and holds the checksum of the base and one of
// its own members. A folder with this marker is never opened as a data directory, because that would change it.

import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { SagittaError } from '../common/errors.js';
import { writeSyncedFile } from './disk.js';

export const MARKER_FILE = 'backup.json';
const MARKER_FORMAT_VERSION = 1;

export interface BackupMarker {
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** Total size of the backup without this file. */
  readonly byteLength: number;
  readonly collectionCount: number;
  readonly base: FileDigest;
}

interface SealedMarker extends BackupMarker {
  readonly format_version: number;
  /** The checksum of the other members. */
  readonly checksum: string;
}

export interface FileDigest {
  readonly byteLength: number;
  /** `crc32:` and eight hexadecimal digits. */
  readonly checksum: string;
}

/** The file is synced; the caller syncs the folder. */
export async function writeMarker(folder: string, marker: BackupMarker): Promise<void> {
  const members = { format_version: MARKER_FORMAT_VERSION, ...marker };
  const sealed = { ...members, checksum: checksumOfMembers(members) };
  const text = `${JSON.stringify(sealed, null, 2)}\n`;
  await writeSyncedFile(join(folder, MARKER_FILE), [Buffer.from(text)]);
}

/**
 * Returns undefined if the folder is not a backup. Throws `data_corrupt`, or `configuration_invalid` for another
 * format.
 */
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
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (cause) {
    throw damagedMarker(path, 'it is not valid JSON', cause);
  }
  const { format_version: version } = (found ?? {}) as { format_version?: unknown };
  if (Number.isInteger(version) && version !== MARKER_FORMAT_VERSION) {
    throw new SagittaError(
      'configuration_invalid',
      `The backup ${folder} has format version ${version}; this version of Sagitta reads ${MARKER_FORMAT_VERSION}.`,
    );
  }
  if (!isMarker(found)) throw damagedMarker(path, 'members are missing');
  const { checksum, ...members } = found;
  if (checksum !== checksumOfMembers(members)) {
    throw damagedMarker(path, 'its members do not match their checksum');
  }
  const { createdAt, byteLength, collectionCount, base } = found;
  return { createdAt, byteLength, collectionCount, base };
}

function damagedMarker(path: string, what: string, cause?: unknown): SagittaError {
  const message = `The file ${path} is damaged: ${what}. Use another backup.`;
  return new SagittaError('data_corrupt', message, { cause });
}

/** Throws `configuration_invalid` for a backup, and everything that `readMarker` throws. */
export async function requireNoBackup(directory: string): Promise<void> {
  if ((await readMarker(directory)) === undefined) return;
  throw new SagittaError(
    'configuration_invalid',
    `The directory ${directory} is a backup, and using it as a data directory would change it. Restore it to a new directory with: sagitta restore ${directory} --data-dir <new directory>. To use this copy itself, delete ${MARKER_FILE} in it.`,
  );
}

/** Bytes per read, short enough not to block the event loop. */
const CHUNK_BYTES = 1024 * 1024;

export async function digestOfFile(path: string): Promise<FileDigest> {
  const file = await open(path, 'r');
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let checksum = 0;
    let byteLength = 0;
    while (true) {
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, byteLength);
      if (bytesRead === 0) break;
      checksum = crc32(chunk.subarray(0, bytesRead), checksum);
      byteLength += bytesRead;
    }
    return { byteLength, checksum: textOf(checksum) };
  } finally {
    await file.close();
  }
}

/** The members are hashed in the order in which the file lists them. */
function checksumOfMembers(members: object): string {
  return textOf(crc32(JSON.stringify(members)));
}

function textOf(checksum: number): string {
  return `crc32:${checksum.toString(16).padStart(8, '0')}`;
}

function isMarker(value: unknown): value is SealedMarker {
  if (typeof value !== 'object' || value === null) return false;
  const { createdAt, byteLength, collectionCount, base, checksum } = value as Partial<SealedMarker>;
  return (
    typeof createdAt === 'string' &&
    Number.isSafeInteger(byteLength) &&
    Number.isSafeInteger(collectionCount) &&
    Number.isSafeInteger(base?.byteLength) &&
    typeof base?.checksum === 'string' &&
    typeof checksum === 'string'
  );
}
