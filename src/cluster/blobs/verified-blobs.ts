// Blobs whose digests are known, and the indexes that name them.

import { hash } from 'node:crypto';
import { SagittaError } from '../../common/errors.js';
import type { Blobs } from './blobs.js';

export interface BlobDigest {
  readonly byteCount: number;
  /** SHA-256, in hexadecimal digits. */
  readonly digest: string;
}

/** Throws `data_corrupt` unless the blob is there and has these bytes. */
export async function getVerified(
  blobs: Blobs,
  name: string,
  { byteCount, digest }: BlobDigest,
): Promise<Uint8Array> {
  const bytes = await blobs.get(name);
  if (bytes !== undefined && hash('sha256', bytes, 'hex') === digest) return bytes;
  const found = bytes === undefined ? 'is missing' : `has ${bytes.length} bytes`;
  throw new SagittaError(
    'data_corrupt',
    `The blob ${name} ${found}; expected ${byteCount} bytes with the SHA-256 ${digest}.`,
  );
}

/** JSON with a format version; undefined when there is no such blob. Throws `data_corrupt`. */
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
    `The blob ${name} is no index that this version of Sagitta reads.`,
  );
}
