// Decides which files are mapped into memory, and maps them. The system can reclaim the memory of a mapping at any
// time, and all threads share it.

import { statfsSync } from 'node:fs';
import { SagittaError } from '../common/errors.js';
import type { FileMapping, KeptParts } from '../common/types.js';
import { BLOCK_BYTES, blockCountOf } from '../platform/blocks.js';
import {
  blocksOf,
  loadNativeFiles,
  type NativeBlocks,
  type NativeFiles,
  UNAVAILABLE_FLAG,
} from '../platform/native-files.js';
import { keptPartsOf, type PartialBlob } from './partial-blob.js';

/** Whether to map files. `auto` maps a file if that is worthwhile and mappings are reliable on its file system. */
export type MappingRule = 'auto' | 'mapped' | 'memory';

/** `auto` reads smaller files: a mapping occupies whole pages, and the number of mappings is limited. */
const AUTO_BYTES_MIN = 1024 * 1024;

/** File systems on which another machine may truncate a mapped file, by the type that statfs reports. */
const REMOTE_FILE_SYSTEMS = new Set([
  0x6969, // NFS
  0x517b, // SMB
  0xff534d42, // CIFS
  0xfe534d42, // SMB 2
  0x01021997, // 9P
  0x65735546, // FUSE
  0x00c36400, // Ceph
  0x5346414f, // AFS
]);

export class FileMapper {
  readonly #native: NativeFiles;
  readonly #flags: Int32Array;
  readonly #bytesMin: number;

  private constructor(native: NativeFiles, bytesMin: number) {
    this.#native = native;
    this.#flags = native.flags();
    this.#bytesMin = bytesMin;
  }

  /**
   * Returns null if all files below the folder should be read. Throws `configuration_invalid` if the rule demands
   * mappings and the addon does not work.
   */
  static create(rule: MappingRule, directory: string): FileMapper | null {
    if (rule === 'memory') return null;
    if (rule === 'auto' && REMOTE_FILE_SYSTEMS.has(statfsSync(directory).type)) return null;
    const native = loadNativeFiles();
    if (typeof native === 'object')
      return new FileMapper(native, rule === 'auto' ? AUTO_BYTES_MIN : 1);
    if (rule === 'auto') return null;
    throw new SagittaError(
      'configuration_invalid',
      `SAGITTA_VALUES is mapped, but files cannot be mapped: ${native}. Set it to auto or memory, or build the addon.`,
    );
  }

  /** For partial files; null where the system has no mappings of this kind. */
  get blocks(): NativeBlocks | null {
    return blocksOf(this.#native);
  }

  /** Returns null if the file should be read instead, or the system cannot map it. */
  map(path: string, byteLength: number): FileMapping | null {
    if (byteLength < this.#bytesMin) return null;
    try {
      const { buffer, index } = this.#native.map(path, byteLength);
      return this.#describe(buffer, index, byteLength, null);
    } catch {
      // Reading either works, or reports what is wrong with the file.
      return null;
    }
  }

  /** Maps a partial file, whose blocks `queue` requests. Throws an error with the reason. */
  mapPartial(
    descriptor: number,
    fileBytes: number,
    blob: PartialBlob,
    queue: number,
  ): { mapping: FileMapping; index: number; generation: number } {
    // With the trailer.
    const first = blockCountOf(blob.byteLength);
    const runs = [...blob.kept, { first, count: 1 }].flatMap((run) => [run.first, run.count]);
    const kept = new Uint32Array(runs);
    const { buffer, index, generation } = this.blocks!.mapPartial(
      ...([descriptor, fileBytes, BLOCK_BYTES, kept, queue] as const),
    );
    const mapping = this.#describe(buffer, index, blob.byteLength, keptPartsOf(blob));
    return { mapping, index, generation };
  }

  #describe(
    buffer: SharedArrayBuffer,
    index: number,
    byteLength: number,
    kept: KeptParts | null,
  ): FileMapping {
    const flags = this.#flags;
    const whole = new Uint8Array(buffer);
    const last = whole.byteLength - 1;
    const lastByte = whole[last];
    return {
      bytes: whole.subarray(0, byteLength),
      kept,
      get failure() {
        const flag = Atomics.load(flags, index);
        if (flag === UNAVAILABLE_FLAG) return 'unavailable';
        // A truncated file reads as zero at its end; complete files never end that way.
        return flag !== 0 || whole[last] !== lastByte ? 'damaged' : null;
      },
    };
  }
}
