// Reads and checks an lmdb file (data version 2) page by page, without lmdb: nothing is changed, no lock
// file is made, and a damaged page is reported and skipped. lmdb itself has no checksums and trusts its
// pages: it crashes on some damage, and most of it goes unnoticed until pages are overwritten.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { SagittaError } from '../common/errors.js';
import {
  type LmdbMeta,
  NO_PAGE,
  readCurrentMeta,
  TABLE_FLAGS,
  type Tree,
  treeAt,
} from './lmdb-meta.js';

export interface PageEntry {
  readonly key: Buffer;
  /** Reads the value; undefined when its pages are damaged. */
  readonly value: () => Buffer | undefined;
}

export type ReportCorruption = (where: string, what: string) => void;

/** From `start` to before `end`. */
interface Range {
  readonly start?: Buffer | undefined;
  readonly end?: Buffer | undefined;
}

// A page: its number (uint64), the transaction that wrote it (uint64), 16 unused bits, flags, then either the
// bounds of its free space, counted from the end of the header, or the number of pages of a long value.
const HEADER_BYTES = 24;
const WRITTEN_BY_OFFSET = 8;
const FLAGS_OFFSET = 18;
const LOWER_OFFSET = 20;
const UPPER_OFFSET = 22;
const BRANCH = 0x01;
const LEAF = 0x02;
const OVERFLOW = 0x04;
// A node: 32 bits with the length of the value or a page number, 16 of flags (in a branch: the upper bits
// of the page number), 16 with the length of the key, then key and value.
const NODE_BYTES = 8;
const IS_LONG_VALUE = 0x01;
const IS_TREE = 0x02;
/** The number of the first page, a transaction, the number of pages. */
const LONG_VALUE_BYTES = 24;
const TREE_BYTES = 48;
const WRITTEN_LATER = 'was written by a transaction that does not exist';
/** lmdb allows no more. */
const DEPTH_MAX = 32;
/** Its keys are the numbers of the transactions that freed the pages. */
const FREE_LIST = 'free list';
const FREE_KEY_BYTES = 8;
const TABLE_LIST = 'table list';
const META_PAGES = 2;

interface Node {
  readonly key: Buffer;
  readonly flags: number;
  /** In a branch: the page that the node refers to. */
  readonly child: number;
  /** In a leaf: the value, or where a long value is. */
  readonly inline: Buffer;
  readonly byteLength: number;
}

export class LmdbPages {
  readonly #descriptor: number;
  readonly #fileBytes: number;
  readonly #meta: LmdbMeta;
  readonly #tables = new Map<string, Tree>();
  /** `page/node` of branch nodes that refer to damaged pages or to pages seen before. */
  readonly #skipped = new Set<string>();
  /** One bit per page, 1 if a tree uses it, or if it was found in the list of free pages. */
  readonly #used: Uint8Array;
  #usedCount = 0;
  #freeCount = 0;

  /** Throws `data_corrupt` when neither meta page is valid. */
  static open(path: string): LmdbPages {
    const descriptor = openSync(path, 'r');
    try {
      return new LmdbPages(descriptor, path);
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
  }

  private constructor(descriptor: number, path: string) {
    this.#descriptor = descriptor;
    this.#fileBytes = fstatSync(descriptor).size;
    this.#meta = readCurrentMeta(descriptor, path);
    this.#used = new Uint8Array(Math.ceil((this.#pageCount + 1) / 8));
  }

  get byteLength(): number {
    return this.#fileBytes;
  }

  /** Of pages at the end that the file lacks. Free ones may be missing: lmdb writes them when it uses them. */
  get missingBytes(): number {
    return Math.max(0, this.#pageCount * this.pageBytes - this.#fileBytes);
  }

  get pageBytes(): number {
    return this.#meta.pageBytes;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** Finds the tables of a file that is not checked; `check` does so by itself. */
  readTables(): void {
    this.#readTables(() => {});
  }

  /**
   * Walks every tree, reports what is wrong with its pages, and calls `visit` for every entry of every
   * table. Returns the number of pages that are neither used nor free: lost space.
   */
  check(report: ReportCorruption, visit: (table: string, entry: PageEntry) => void): number {
    for (const problem of this.#meta.problems) report('meta pages', problem);
    this.#readTables(report);
    for (const [name, tree] of this.#tables) {
      for (const entry of this.#checkTree(name, tree, report)) visit(name, entry);
    }
    this.#checkFreeList(report);
    return this.#pageCount - META_PAGES - this.#usedCount - this.#freeCount;
  }

  /** The entries of a table in key order, after `check` or `readTables`; damaged ones are skipped. */
  *entries(table: string, range: Range = {}): Iterable<PageEntry> {
    const tree = this.#tables.get(table);
    if (tree !== undefined) yield* this.#walk(table, tree, range, undefined);
  }

  /**
   * Runs of pages that were free before the last transaction, and still are. Throws `data_corrupt` when the
   * list of free pages is damaged.
   */
  *freeRuns(): Iterable<[first: number, count: number]> {
    const fail: ReportCorruption = (where, what) => {
      throw new SagittaError('data_corrupt', `The file of the store is damaged: ${where} ${what}.`);
    };
    for (const { runs, freedBy } of this.#freeEntries(fail)) {
      if (freedBy < this.#meta.transaction) yield* runs;
    }
  }

  #readTables(report: ReportCorruption): void {
    for (const entry of this.#checkTree(TABLE_LIST, this.#meta.main, report)) {
      const value = entry.value();
      // Names are stored with the terminating zero of C.
      const name = entry.key.toString('utf8').replace(/\0$/, '');
      const where = `table ${JSON.stringify(name)}`;
      if (value?.byteLength !== TREE_BYTES) {
        report(where, 'has no tree');
        continue;
      }
      const tree = treeAt(value, 0);
      // Others mean several values per key, for example, which lmdb would look for in the pages.
      if (tree.flags !== TABLE_FLAGS) report(where, `has flags ${tree.flags}, expected 0`);
      this.#tables.set(name, tree);
    }
  }

  get #pageCount(): number {
    return this.#meta.lastPage + 1;
  }

  *#checkTree(place: string, tree: Tree, report: ReportCorruption): Iterable<PageEntry> {
    let entryCount = 0;
    let damageCount = 0;
    const count: ReportCorruption = (where, what) => {
      damageCount++;
      report(where, what);
    };
    for (const entry of this.#walk(place, tree, {}, count)) {
      entryCount++;
      yield entry;
    }
    if (damageCount === 0 && entryCount !== tree.entryCount) {
      report(place, `has ${entryCount} entries, expected ${tree.entryCount}`);
    }
  }

  *#walk(
    place: string,
    tree: Tree,
    range: Range,
    report: ReportCorruption | undefined,
  ): Iterable<PageEntry> {
    if (tree.root === null) {
      if (tree.depth !== 0) report?.(place, `is empty, but ${tree.depth} levels deep`);
      return;
    }
    if (tree.depth > DEPTH_MAX) {
      report?.(place, `is ${tree.depth} levels deep, expected at most ${DEPTH_MAX}`);
      return;
    }
    const edge = `root of ${place}`;
    if (this.#skipped.has(edge)) return;
    if (report !== undefined && !this.#use(tree.root, 1, place, report)) {
      this.#skipped.add(edge);
      return;
    }
    yield* this.#walkPage({ place, tree, range, report }, tree.root, 1, {});
  }

  *#walkPage(
    walk: { place: string; tree: Tree; range: Range; report: ReportCorruption | undefined },
    number: number,
    level: number,
    bounds: Range,
  ): Iterable<PageEntry> {
    const { place, tree, range, report } = walk;
    const where = `page ${number} (${place})`;
    const isLeaf = level === tree.depth;
    const nodes = this.#readNodes(number, isLeaf, (what) => report?.(where, what));
    if (nodes === undefined) return;
    if (report !== undefined) checkOrder(nodes, isLeaf, bounds, place === FREE_LIST, where, report);
    for (const [i, node] of nodes.entries()) {
      if (isLeaf) {
        if (!isInside(node.key, range)) continue;
        if (report !== undefined) {
          checkKind(node, place === TABLE_LIST, where, report);
          this.#checkLongValue(node, where, report);
        }
        yield { key: node.key, value: () => this.#readValue(node) };
        continue;
      }
      // The first node of a branch has no key: its child has the lower bound of the branch.
      const start = i === 0 ? bounds.start : node.key;
      const end = nodes[i + 1]?.key ?? bounds.end;
      if (range.start !== undefined && end !== undefined && range.start.compare(end) >= 0) continue;
      if (range.end !== undefined && start !== undefined && start.compare(range.end) >= 0) continue;
      const edge = `${number}/${i}`;
      if (this.#skipped.has(edge)) continue;
      if (report !== undefined && !this.#use(node.child, 1, where, report)) {
        this.#skipped.add(edge);
        continue;
      }
      yield* this.#walkPage(walk, node.child, level + 1, { start, end });
    }
  }

  /** Marks pages as used by a tree; false when they do not exist or are used already. */
  #use(first: number, count: number, where: string, report: ReportCorruption): boolean {
    if (!(first >= META_PAGES && first + count <= this.#pageCount)) {
      report(where, `refers to page ${first}; the file has ${this.#pageCount} pages`);
      return false;
    }
    for (let page = first; page < first + count; page++) {
      if (this.#isUsed(page)) {
        report(where, `refers to page ${page}, which is already used elsewhere`);
        return false;
      }
      this.#used[page >>> 3]! |= 1 << (page & 7);
      this.#usedCount++;
    }
    return true;
  }

  #isUsed(page: number): boolean {
    return ((this.#used[page >>> 3]! >>> (page & 7)) & 1) === 1;
  }

  #readNodes(
    number: number,
    isLeaf: boolean,
    report: (what: string) => void,
  ): readonly Node[] | undefined {
    const { pageBytes } = this.#meta;
    const page = this.#read(number * pageBytes, pageBytes);
    if (page === undefined) return void report('is beyond the end of the file');
    const found = page.readBigUInt64LE(0);
    if (found !== BigInt(number)) return void report(`has the page number ${found}`);
    if (!this.#isWrittenBefore(page)) return void report(WRITTEN_LATER);
    const flags = page.readUInt16LE(FLAGS_OFFSET);
    if (flags !== (isLeaf ? LEAF : BRANCH)) {
      return void report(`has flags ${flags}, expected those of a ${isLeaf ? 'leaf' : 'branch'}`);
    }
    const lower = page.readUInt16LE(LOWER_OFFSET);
    const upper = page.readUInt16LE(UPPER_OFFSET);
    if (lower % 2 !== 0 || lower > upper || HEADER_BYTES + upper > pageBytes || lower === 0) {
      return void report(`has invalid bounds of free space: ${lower} to ${upper}`);
    }
    const nodes: Node[] = [];
    let lowest = pageBytes - HEADER_BYTES;
    let nodeBytes = 0;
    for (let i = 0; i < lower >>> 1; i++) {
      const at = page.readUInt16LE(HEADER_BYTES + 2 * i);
      lowest = Math.min(lowest, at);
      const node = readNode(page, HEADER_BYTES + at, isLeaf);
      if (node === undefined) {
        report(`entry ${i} reaches beyond the page`);
        continue;
      }
      nodes.push(node);
      const bytes = NODE_BYTES + node.key.byteLength + node.inline.byteLength;
      nodeBytes += bytes + (bytes % 2);
    }
    // Nodes fill the page without gaps from the end of the free space on.
    if (lowest !== upper || nodeBytes !== pageBytes - HEADER_BYTES - upper) {
      report(
        `has ${nodes.length} entries of ${nodeBytes} bytes from offset ${lowest} on, but its free space ends at ${upper}`,
      );
    }
    return nodes;
  }

  #checkLongValue(node: Node, where: string, report: ReportCorruption): void {
    if ((node.flags & IS_LONG_VALUE) === 0) return;
    const { first, count } = longValueOf(node);
    const expected = Math.ceil((HEADER_BYTES + node.byteLength) / this.#meta.pageBytes);
    const key = JSON.stringify(node.key.toString('latin1'));
    // A value that a transaction writes twice keeps the pages of the first one, which may have been longer.
    if (!(count >= expected)) {
      report(where, `the value of ${key} has ${count} pages, expected ${expected}`);
    } else if (this.#use(first, count, where, report) && !this.#hasLongValue(first, count)) {
      report(where, `the value of ${key} is not on page ${first}`);
    }
  }

  #readValue(node: Node): Buffer | undefined {
    if ((node.flags & IS_LONG_VALUE) === 0) return node.inline;
    const { first, count } = longValueOf(node);
    const { pageBytes } = this.#meta;
    if (first + count > this.#pageCount || node.byteLength > count * pageBytes - HEADER_BYTES) {
      return undefined;
    }
    if (!this.#hasLongValue(first, count)) return undefined;
    return this.#read(first * pageBytes + HEADER_BYTES, node.byteLength);
  }

  /** Whether a long value begins on this page. */
  #hasLongValue(first: number, count: number): boolean {
    const { pageBytes } = this.#meta;
    if ((first + count) * pageBytes > this.#fileBytes) return false;
    const header = this.#read(first * pageBytes, HEADER_BYTES);
    return (
      header !== undefined &&
      header.readBigUInt64LE(0) === BigInt(first) &&
      this.#isWrittenBefore(header) &&
      header.readUInt16LE(FLAGS_OFFSET) === OVERFLOW &&
      header.readUInt32LE(LOWER_OFFSET) === count
    );
  }

  /** lmdb takes a page of a later transaction for its own copy in memory, and writes to the mapped file. */
  #isWrittenBefore(page: Buffer): boolean {
    return page.readBigUInt64LE(WRITTEN_BY_OFFSET) <= this.#meta.transaction;
  }

  /** A used page that is listed as free would be overwritten, and one that is listed twice be used twice. */
  #checkFreeList(report: ReportCorruption): void {
    let before = 0n;
    for (const { runs, freedBy } of this.#freeEntries(report)) {
      const where = `entry ${freedBy} of ${FREE_LIST}`;
      if (freedBy <= before || freedBy > this.#meta.transaction) {
        report(where, `follows ${before}; the last transaction is ${this.#meta.transaction}`);
      }
      before = freedBy;
      for (const [first, count] of runs) {
        for (let page = first; page < first + count; page++) {
          if (this.#isUsed(page)) {
            report(where, `lists page ${page}, which is in use or listed before`);
            continue;
          }
          this.#used[page >>> 3]! |= 1 << (page & 7);
          this.#freeCount++;
        }
      }
    }
  }

  /** The list of free pages, by the transactions that freed them. */
  *#freeEntries(
    report: ReportCorruption,
  ): Iterable<{ freedBy: bigint; runs: [first: number, count: number][] }> {
    for (const { key, value } of this.#checkTree(FREE_LIST, this.#meta.free, report)) {
      // A key that is not a number was reported with its page.
      if (key.byteLength !== FREE_KEY_BYTES) continue;
      const bytes = value();
      const freedBy = key.readBigUInt64LE(0);
      const where = `entry ${freedBy} of ${FREE_LIST}`;
      if (bytes === undefined || bytes.byteLength < 8 || bytes.byteLength % 8 !== 0) {
        report(where, 'cannot be read');
        continue;
      }
      const wordCount = bytes.byteLength / 8 - 1;
      const used = bytes.readBigUInt64LE(0);
      if (used > wordCount) report(where, `has ${wordCount} numbers, expected ${used}`);
      const runs: [first: number, count: number][] = [];
      for (const [first, count] of freeRuns(bytes, Math.min(Number(used), wordCount))) {
        if (first >= META_PAGES && first + count <= this.#pageCount) runs.push([first, count]);
        else report(where, `lists page ${first}; the file has ${this.#pageCount} pages`);
      }
      yield { freedBy, runs };
    }
  }

  #read(position: number, byteLength: number): Buffer | undefined {
    if (position + byteLength > this.#fileBytes) return undefined;
    const bytes = Buffer.alloc(byteLength);
    let at = 0;
    while (at < byteLength) {
      const count = readSync(this.#descriptor, bytes, at, byteLength - at, position + at);
      if (count === 0) return undefined;
      at += count;
    }
    return bytes;
  }
}

function readNode(page: Buffer, at: number, isLeaf: boolean): Node | undefined {
  if (at + NODE_BYTES > page.byteLength) return undefined;
  const low = page.readUInt32LE(at);
  const flags = page.readUInt16LE(at + 4);
  const keyEnd = at + NODE_BYTES + page.readUInt16LE(at + 6);
  const isLong = (flags & IS_LONG_VALUE) !== 0;
  const inlineBytes = !isLeaf ? 0 : isLong ? LONG_VALUE_BYTES : low;
  if (keyEnd + inlineBytes > page.byteLength) return undefined;
  if (isLeaf && (flags & ~(IS_LONG_VALUE | IS_TREE)) !== 0) return undefined;
  return {
    key: page.subarray(at + NODE_BYTES, keyEnd),
    flags: isLeaf ? flags : 0,
    child: low + flags * 2 ** 32,
    inline: page.subarray(keyEnd, keyEnd + inlineBytes),
    byteLength: low,
  };
}

function longValueOf({ inline }: Node): { first: number; count: number } {
  const first = inline.readBigUInt64LE(0);
  return {
    first: first === NO_PAGE ? -1 : Number(first),
    count: Number(inline.readBigUInt64LE(16)),
  };
}

/** The entries of the list of tables are trees, and no others are. */
function checkKind(node: Node, isTree: boolean, where: string, report: ReportCorruption): void {
  if ((node.flags & IS_TREE) === (isTree ? IS_TREE : 0)) return;
  const key = JSON.stringify(node.key.toString('latin1'));
  report(where, `the entry ${key} has flags ${node.flags}`);
}

function checkOrder(
  nodes: readonly Node[],
  isLeaf: boolean,
  bounds: Range,
  hasNumbers: boolean,
  where: string,
  report: ReportCorruption,
): void {
  for (const [i, { key }] of nodes.entries()) {
    if (!isLeaf && i === 0) continue;
    if (hasNumbers) {
      if (key.byteLength !== FREE_KEY_BYTES)
        report(where, `entry ${i} has a key of ${key.byteLength} bytes`);
      continue;
    }
    const previous = isLeaf || i > 1 ? nodes[i - 1]?.key : undefined;
    const isAscending = previous === undefined || previous.compare(key) < 0;
    if (!isAscending || !isInside(key, bounds))
      report(where, `the key of entry ${i} is out of order`);
  }
}

function isInside(key: Buffer, { start, end }: Range): boolean {
  if (start !== undefined && key.compare(start) < 0) return false;
  return end === undefined || key.compare(end) < 0;
}

/** Runs of free pages. A negative number is the length of a run, and the next number its first page. */
function* freeRuns(bytes: Buffer, count: number): Iterable<[first: number, count: number]> {
  for (let i = 1; i <= count; i++) {
    const entry = Number(bytes.readBigInt64LE(i * 8));
    if (entry > 0) yield [entry, 1];
    // At the end of the list there is no page, which is reported like page 0.
    else if (entry < 0) yield [i < count ? Number(bytes.readBigInt64LE(++i * 8)) : 0, -entry];
  }
}
