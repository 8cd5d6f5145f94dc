// The blobs that the configuration names.

import type { BlobStoreSettings } from '../../platform/settings.js';
import type { Blobs } from './blobs.js';
import { FolderBlobs } from './folder-blobs.js';

/** Loads the client of S3 only where it is used. */
export async function openBlobs(settings: BlobStoreSettings): Promise<Blobs> {
  if (settings.kind === 'folder') return new FolderBlobs(settings.folder);
  const { S3Blobs } = await import('./s3-blobs.js');
  return new S3Blobs(settings);
}
