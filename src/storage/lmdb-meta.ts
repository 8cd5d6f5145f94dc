// Reads the two meta pages at the start of an lmdb file, which have the roots of its trees. Transactions
// write them in turns, so that one is always intact.

import { fstatSync, readSync } from 'node:fs';
import { SagittaError } from '../common/errors.js';

/** The B+ tree of a table. */
export interface Tree {
  readonly depth: number;
  readonly entryCount: number;
  /** Page number; null for an empty tree. */
  readonly root: number | null;
  readonly flags: number;
}

export interface LmdbMeta {
  readonly pageBytes: number;
  readonly lastPage: number;
  /** The number of the transaction that wrote the page. */
  readonly transaction: bigint;
  readonly free: Tree;
  readonly main: Tree;
  /** What is wrong, although at least one of the two pages is intact. */
  readonly problems: readonly string[];
}

// Offsets from the start of a page. Numbers are little-endian on all supported machines.
const MAGIC_OFFSET = 24;
const MAGIC = 0xbeefc0de;
const VERSION_OFFSET = 28;
const VERSION = 2;
const FREE_OFFSET = 48;
/** lmdb stores the page size in an unused field of the free list. */
const PAGE_BYTES_OFFSET = FREE_OFFSET;
const MAIN_OFFSET = 96;
const LAST_PAGE_OFFSET = 144;
const TRANSACTION_OFFSET = 152;
const META_BYTES = 168;
const PAGE_FLAGS_OFFSET = 18;
const IS_META = 0x08;
export const NO_PAGE = 0xffff_ffff_ffff_ffffn;
/** Of the list of free pages: its keys are numbers of eight bytes, and the path of the file is not a folder. */
const FREE_FLAGS = 0x4008;
/** How the last transaction was synced, which lmdb ignores in a file that is opened as here. */
const SYNC_FLAG = 0x1000;
export const TABLE_FLAGS = 0;
const PAGE_BYTES_MIN = 256;
const PAGE_BYTES_MAX = 65_536;
const PAGE_BYTES_USUAL = 4_096;
const TAIL_BYTES_MAX = 64 * 1024 * 1024;

const TREE_FLAGS_OFFSET = 4;

/** One of the two meta pages. */
export type MetaPage = Omit<LmdbMeta, 'problems'>;

/** The meta page of the last transaction. Throws `data_corrupt` when neither page is valid. */
export function readCurrentMeta(descriptor: number, path: string): LmdbMeta {
  const { size } = fstatSync(descriptor);
  // Free pages at the end may be missing from the file, but a wrong number is far beyond it.
  const isPlausible = (page: MetaPage | undefined) =>
    page !== undefined && page.lastPage * page.pageBytes <= 2 * size + TAIL_BYTES_MAX;
  const read = (position: number) => {
    const page = readMetaPage(descriptor, position);
    return isPlausible(page) ? page : undefined;
  };
  const first = read(0);
  // The second page follows the first, which has the page size; assume the usual one if it is damaged.
  const second = read(first?.pageBytes ?? PAGE_BYTES_USUAL);
  if (first === undefined && second === undefined) {
    throw notLmdb(path);
  }
  const problems: string[] = [];
  if (first === undefined) problems.push('page 0 is not a valid meta page');
  if (second === undefined) problems.push('page 1 is not a valid meta page');
  if (first !== undefined && second !== undefined && !isPair(first, second)) {
    problems.push(
      `pages 0 and 1 are of transactions ${first.transaction} and ${second.transaction}, which do not follow one another in these places`,
    );
  }
  const current =
    first !== undefined && (second === undefined || first.transaction > second.transaction)
      ? first
      : second!;
  return { ...current, problems };
}

/**
 * Transactions with even numbers write the first page. One that was damaged could look like the newer one, and
 * lmdb would go back. In a new file both pages are blank, and in a copy by lmdb the first one.
 */
function isPair(first: MetaPage, second: MetaPage): boolean {
  const isBlank = first.transaction === 0n && first.main.root === null && first.free.root === null;
  if (isBlank) return true;
  const isInPlace = first.transaction % 2n === 0n && second.transaction % 2n === 1n;
  const distance = first.transaction - second.transaction;
  return isInPlace && (distance === 1n || distance === -1n);
}

export function notLmdb(path: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `The file ${path} is damaged: its first pages are not those of an lmdb file of version ${VERSION}. Restore a backup.`,
  );
}

/** A tree as stored in a meta page, or as the value of a table name. */
export function treeAt(bytes: Buffer, at: number): Tree {
  const root = bytes.readBigUInt64LE(at + 40);
  return {
    flags: bytes.readUInt16LE(at + TREE_FLAGS_OFFSET),
    depth: bytes.readUInt16LE(at + 6),
    entryCount: Number(bytes.readBigUInt64LE(at + 32)),
    root: root === NO_PAGE ? null : Number(root),
  };
}

/** The meta page at this offset in the file; undefined when it is damaged. */
export function readMetaPage(descriptor: number, position: number): MetaPage | undefined {
  const bytes = Buffer.alloc(META_BYTES);
  if (readSync(descriptor, bytes, 0, META_BYTES, position) < META_BYTES) return undefined;
  const pageBytes = bytes.readUInt32LE(PAGE_BYTES_OFFSET);
  const isValid =
    bytes.readUInt32LE(MAGIC_OFFSET) === MAGIC &&
    bytes.readUInt16LE(VERSION_OFFSET) === VERSION &&
    bytes.readUInt16LE(PAGE_FLAGS_OFFSET) === IS_META &&
    (bytes.readUInt16LE(FREE_OFFSET + TREE_FLAGS_OFFSET) & ~SYNC_FLAG) === FREE_FLAGS &&
    bytes.readUInt16LE(MAIN_OFFSET + TREE_FLAGS_OFFSET) === TABLE_FLAGS &&
    pageBytes >= PAGE_BYTES_MIN &&
    pageBytes <= PAGE_BYTES_MAX &&
    (position === 0 || position === pageBytes) &&
    bytes.readBigUInt64LE(0) === BigInt(position / pageBytes);
  if (!isValid) return undefined;
  return {
    pageBytes,
    lastPage: Number(bytes.readBigUInt64LE(LAST_PAGE_OFFSET)),
    free: treeAt(bytes, FREE_OFFSET),
    main: treeAt(bytes, MAIN_OFFSET),
    transaction: bytes.readBigUInt64LE(TRANSACTION_OFFSET),
  };
}
