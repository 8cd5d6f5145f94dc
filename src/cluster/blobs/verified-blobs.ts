// Indexes of blobs.

import { SagittaError } from '../../common/errors.js';
import type { Blobs } from './blobs.js';

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
