// Decides which files are mapped into memory, and maps them. A mapping takes no memory that the system cannot
// take back, and it is shared by all threads.

import { statfsSync } from 'node:fs';
import { SagittaError } from '../common/errors.js';
import type { FileMapping } from '../common/types.js';
import { loadNativeFiles, type NativeFiles } from '../platform/native-files.js';

/** Whether files are mapped: `auto` maps those for which it pays where mappings are reliable. */
export type MappingRule = 'auto' | 'mapped' | 'memory';

/** With `auto`, smaller files are read: a mapping costs whole pages, and one of a limited number. */
const AUTO_BYTES_MIN = 1024 * 1024;

/** By the number that statfs gives: file systems where another machine may cut a mapped file. */
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
   * For the files below a folder; null to read them all. Throws `configuration_invalid` when the rule asks
   * for mappings and the addon does not work.
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

  /** Null for a file that is to be read, or that the system does not map. */
  map(path: string, byteLength: number): FileMapping | null {
    if (byteLength < this.#bytesMin) return null;
    try {
      const { buffer, index } = this.#native.map(path, byteLength);
      const flags = this.#flags;
      const bytes = new Uint8Array(buffer);
      const last = byteLength - 1;
      const lastByte = bytes[last];
      return {
        bytes,
        get isDamaged() {
          // The end of a file that was cut reads as zero: our files do not end so.
          return bytes[last] !== lastByte || Atomics.load(flags, index) !== 0;
        },
      };
    } catch {
      // Reading either works, or says what is wrong with the file.
      return null;
    }
  }
}
