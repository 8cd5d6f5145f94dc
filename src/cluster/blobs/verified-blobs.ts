// Blobs that are read with their digests, and the indexes that name them.

import { hash } from 'node:crypto';
import { SagittaError } from '../../common/errors.js';
import type { Blobs } from './blobs.js';

export interface BlobDigest {
  readonly byteCount: number;
  /** SHA-256, in hexadecimal digits. */
  readonly digest: string;
}

/** Throws `data_corrupt` unless the blob exists and has these bytes. */
export async function getVerified(
  blobs: Blobs,
  name: string,
  { byteCount, digest }: BlobDigest,
): Promise<Uint8Array> {
  const bytes = await blobs.get(name);
  if (bytes !== undefined && hash('sha256', bytes, 'hex') === digest) return bytes;
  const found = bytes === undefined ? 'none' : `${bytes.length} other bytes`;
  throw new SagittaError(
    'data_corrupt',
    `Expected the blob ${name} with ${byteCount} bytes and the SHA-256 ${digest}; found ${found}.`,
  );
}

/** Reads JSON with a format version; undefined for a blob that does not exist. Throws `data_corrupt`. */
export async function getIndex<Index extends { readonly formatVersion: 1 }>(
  blobs: Blobs,
  name: string,
): Promise<Index | undefined> {
  const bytes = await blobs.get(name);
  if (bytes === undefined) return undefined;
  try {
    const index = JSON.parse(Buffer.from(bytes).toString()) as Index;
    if (index.formatVersion === 1) return index;
  } catch {}
  throw new SagittaError(
    'data_corrupt',
    `Expected the blob ${name} to be an index of format 1; found something else.`,
  );
}
