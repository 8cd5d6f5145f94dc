// A source of blocks for tests that reads them from files in a folder.

import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { BLOCK_BYTES } from '../../src/platform/blocks.js';
import { SourceControl } from './made-blocks.js';

export interface FolderBlocks {
  readonly folder: string;
  /** Of the control. */
  readonly shared: Int32Array<SharedArrayBuffer>;
}

export function openBlockSource({ folder, shared }: FolderBlocks) {
  const control = new SourceControl(shared);
  return {
    async read(name: string, block: number): Promise<Uint8Array> {
      const file = await open(join(folder, name));
      try {
        const bytes = new Uint8Array(BLOCK_BYTES);
        const { bytesRead } = await file.read(bytes, 0, BLOCK_BYTES, block * BLOCK_BYTES);
        return await control.read(bytes.subarray(0, bytesRead));
      } finally {
        await file.close();
      }
    },
  };
}
