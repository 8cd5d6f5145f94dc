// Compiles faults.c and controls it in a running process: which calls are counted, and what happens to the n-th of
// them.

import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * In the order of `enum call`. `create` is an open that creates a file, `copy` is sendfile or copy_file_range, and
 * `dsync` is any kind of write to a file that is open with O_DSYNC.
 */
export const CALLS = [
  'write',
  'pwrite',
  'writev',
  'pwritev',
  'fdatasync',
  'fsync',
  'rename',
  'ftruncate',
  'fallocate',
  'create',
  'mmap',
  'msync',
  'copy',
  'dsync',
  'read',
  'unlink',
] as const;
export type Call = (typeof CALLS)[number];

/** In the order of `enum mode`. */
const MODES = [
  'none',
  'error',
  'short',
  'torn',
  'kill',
  'lost',
  'random',
  'late',
  'fills',
  'stale',
] as const;
type Mode = (typeof MODES)[number];

/** Error numbers of Linux. */
const ERRORS = { EIO: 5, EINTR: 4, ENOMEM: 12, ENOSPC: 28, EDQUOT: 122 } as const;

export const FAULTS = {
  eio: { mode: 'error', error: 'EIO' },
  enospc: { mode: 'error', error: 'ENOSPC' },
  edquot: { mode: 'error', error: 'EDQUOT' },
  enomem: { mode: 'error', error: 'ENOMEM' },
  eintr: { mode: 'error', error: 'EINTR' },
  /** Half is written or read, and the call says so. */
  short: { mode: 'short', error: 'EIO' },
  /** Half is written, and the call fails. */
  torn: { mode: 'torn', error: 'EIO' },
  /** The same on a full disk, and with an exceeded quota. */
  tornfull: { mode: 'torn', error: 'ENOSPC' },
  tornquota: { mode: 'torn', error: 'EDQUOT' },
  /** Half is written, and the call says so; the next one fails because the disk is full. */
  fills: { mode: 'fills', error: 'ENOSPC' },
  /** Everything is done, and the call fails. */
  late: { mode: 'late', error: 'EIO' },
  /** Half is written, and the process is killed. */
  kill: { mode: 'kill', error: 'EIO' },
  /** A sync, or a write that is one, fails, and everything written since the last sync is gone. */
  lost: { mode: 'lost', error: 'EIO' },
  /** A write that is a sync fails, and its data can be read until `evict`. */
  stale: { mode: 'stale', error: 'EIO' },
} as const satisfies Record<string, { mode: Mode; error: keyof typeof ERRORS }>;
export type Fault = keyof typeof FAULTS;

/** Faults that leave the process alive, so that it can continue by itself. */
export const STORE_FAULTS: readonly Fault[] = (Object.keys(FAULTS) as Fault[]).filter(
  (fault) => fault !== 'kill',
);

/** Calls that can be short. */
export const WRITES: readonly Call[] = ['write', 'pwrite', 'writev', 'pwritev', 'copy', 'dsync'];
const SYNCS: readonly Call[] = ['fdatasync', 'fsync', 'dsync'];
const INTERRUPTED: readonly Call[] = [...WRITES, 'create'];
const PARTS: readonly Fault[] = ['torn', 'tornfull', 'tornquota', 'fills'];

/** Whether a call can have the fault at all. */
export function isPossible(call: Call, fault: Fault): boolean {
  if (fault === 'short') return WRITES.includes(call) || call === 'read';
  if (PARTS.includes(fault)) return WRITES.includes(call);
  if (fault === 'stale') return call === 'dsync';
  if (fault === 'late') return call !== 'mmap' && call !== 'read';
  if (fault === 'eintr') return INTERRUPTED.includes(call);
  if (fault === 'lost') return SYNCS.includes(call);
  if (fault === 'enomem') return call === 'mmap';
  if (fault === 'kill') return true;
  if (call === 'read' || call === 'unlink') return fault === 'eio';
  return call !== 'mmap' || fault === 'eio';
}

// Offsets in `struct control`, in bytes.
const FIELD = {
  mode: 0,
  calls: 4,
  first: 8,
  times: 12,
  error: 16,
  share: 20,
  seed: 24,
  evict: 28,
} as const;
const FIRED_OFFSET = 36;
const COUNTS_OFFSET = 40;
const PLACE_OFFSET = COUNTS_OFFSET + 4 * CALLS.length;
const PLACE_BYTES = 256;
const CONTROL_BYTES = PLACE_OFFSET + PLACE_BYTES;

const SOURCE = fileURLToPath(new URL('../../../../test/hostile/disk/faults.c', import.meta.url));

/** Compiles the library into the folder. Returns its path, or the reason of the failure. */
export function compileFaults(folder: string): { library: string } | { reason: string } {
  if (process.platform !== 'linux') return { reason: 'libraries are preloaded on Linux only' };
  const library = join(folder, 'faults.so');
  try {
    execFileSync(
      process.env.CC ?? 'gcc',
      ['-O1', '-shared', '-fPIC', '-o', library, SOURCE, '-ldl', '-lpthread'],
      { stdio: 'pipe' },
    );
  } catch (error) {
    return { reason: `there is no working C compiler: ${(error as Error).message}` };
  }
  return { library };
}

export class FaultyDisk {
  readonly #path: string;
  readonly #library: string;
  readonly #folder: string;
  readonly #descriptor: number;

  /**
   * @param library from `compileFaults`.
   *
   * @param folder only calls on files below it are counted and can fail.
   *
   * @param controlPath a file outside `folder`; created if it does not exist.
   */
  constructor(library: string, folder: string, controlPath: string) {
    this.#library = library;
    this.#folder = folder;
    this.#path = controlPath;
    // An existing file is kept, since a process may have mapped it.
    if (!existsSync(controlPath)) writeFileSync(controlPath, Buffer.alloc(CONTROL_BYTES));
    this.#descriptor = openSync(controlPath, 'r+');
  }

  /** The environment of a process with this disk. */
  get environment(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: this.#library,
      FAULTS_CONTROL: this.#path,
      FAULTS_FOLDER: this.#folder,
      // Calls of io_uring bypass the C library.
      UV_USE_IO_URING: '0',
    };
  }

  /**
   * From now on, the n-th of these calls and the `times - 1` calls after it have the fault. Counting starts at zero.
   */
  arm(options: { calls: readonly Call[]; fault: Fault; nth: number; times?: number }): void {
    const { mode, error } = FAULTS[options.fault];
    this.#write({
      mode,
      calls: options.calls,
      first: options.nth,
      times: options.times ?? 1,
      error: ERRORS[error],
    });
  }

  /** From now on, a share (0 to 1) of the writes is shorter than requested, chosen by the seed. */
  armRandom(options: { calls: readonly Call[]; share: number; seed: number }): void {
    const share = Math.round(options.share * 65_536);
    this.#write({ mode: 'random', calls: options.calls, share, seed: options.seed });
  }

  /** From now on nothing fails. Calls are still counted. */
  disarm(): void {
    this.#put(FIELD.mode, MODES.indexOf('none'));
  }

  /**
   * Reverts the data of failed writes, unless it was written again since, as the system does when it rereads a page
   * that it could not write. Happens when the process with the library next opens a file below the folder.
   */
  evict(): void {
    this.#put(FIELD.evict, 1);
  }

  /** Number of faults since `arm`, and the file of the last one. */
  get fired(): { count: number; path: string } {
    const bytes = this.#read();
    const end = bytes.indexOf(0, PLACE_OFFSET);
    return {
      count: bytes.readUInt32LE(FIRED_OFFSET),
      path: bytes.toString('utf8', PLACE_OFFSET, end),
    };
  }

  /** Number of calls of each kind since `arm`. */
  get counts(): Readonly<Record<Call, number>> {
    const bytes = this.#read();
    const entries = CALLS.map((call, i) => [call, bytes.readUInt32LE(COUNTS_OFFSET + 4 * i)]);
    return Object.fromEntries(entries) as Record<Call, number>;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #write(options: {
    mode: Mode;
    calls: readonly Call[];
    first?: number;
    times?: number;
    error?: number;
    share?: number;
    seed?: number;
  }): void {
    this.disarm();
    const zeros = Buffer.alloc(CONTROL_BYTES - FIELD.calls);
    writeSync(this.#descriptor, zeros, 0, zeros.length, FIELD.calls);
    let mask = 0;
    for (const call of options.calls) mask |= 1 << CALLS.indexOf(call);
    this.#put(FIELD.calls, mask);
    this.#put(FIELD.first, options.first ?? 1);
    this.#put(FIELD.times, options.times ?? 1);
    this.#put(FIELD.error, options.error ?? 0);
    this.#put(FIELD.share, options.share ?? 0);
    this.#put(FIELD.seed, options.seed ?? 0);
    // Written last, because the process reads the other fields once it sees this one.
    this.#put(FIELD.mode, MODES.indexOf(options.mode));
  }

  #put(offset: number, value: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    writeSync(this.#descriptor, bytes, 0, 4, offset);
  }

  #read(): Buffer {
    const bytes = Buffer.alloc(CONTROL_BYTES);
    readSync(this.#descriptor, bytes, 0, CONTROL_BYTES, 0);
    return bytes;
  }
}
