// Reads an lmdb file (data version 2) page by page, without lmdb: nothing is changed, no lock file is
// made, and a page that is damaged is told of and passed over, where lmdb would end the process or
// read elsewhere. Knows pages and trees; what keys and values mean is left to others.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { type LmdbMeta, NO_PAGE, readCurrentMeta, type Tree, treeAt } from './lmdb-meta.js';

export interface PageEntry {
  readonly key: Buffer;
  /** Undefined when the pages that hold it are damaged. Read when called. */
  readonly value: () => Buffer | undefined;
}

export type ReportCorruption = (where: string, what: string) => void;

/** From `start` to before `end`. */
interface Range {
  readonly start?: Buffer | undefined;
  readonly end?: Buffer | undefined;
}

// A page: its number (uint64), a transaction (uint64), 16 unused bits, flags, then either where free
// space begins and ends, counted from the header's end, or of how many pages a long value has.
const HEADER_BYTES = 24;
const FLAGS_OFFSET = 18;
const LOWER_OFFSET = 20;
const UPPER_OFFSET = 22;
const BRANCH = 0x01;
const LEAF = 0x02;
const OVERFLOW = 0x04;
// A node: 32 bits of the value's length or of a page's number, 16 of flags (in a branch: the upper
// bits of the number), 16 of the key's length, then key and value.
const NODE_BYTES = 8;
const IS_LONG_VALUE = 0x01;
const IS_TREE = 0x02;
/** The number of the first page, a transaction, the count of pages. */
const LONG_VALUE_BYTES = 24;
const TREE_BYTES = 48;
/** lmdb itself goes no deeper. */
const DEPTH_MAX = 32;
/** Its keys are numbers, of the transactions that freed the pages. */
const FREE_LIST = 'the list of free pages';
const FREE_KEY_BYTES = 8;
const TABLE_LIST = 'the list of tables';
const META_PAGES = 2;

interface Node {
  readonly key: Buffer;
  readonly flags: number;
  /** Of a branch. */
  readonly child: number;
  /** Of a leaf: what stands in the node. */
  readonly inline: Buffer;
  readonly byteLength: number;
}

export class LmdbPages {
  readonly #descriptor: number;
  readonly #fileBytes: number;
  readonly #meta: LmdbMeta;
  readonly #tables = new Map<string, Tree>();
  /** `page/node` of branches that lead to what is damaged or was met before. */
  readonly #refused = new Set<string>();
  /** One bit a page that a tree uses. */
  readonly #used: Uint8Array;
  #usedCount = 0;
  #freeCount = 0;

  /** Throws `data_corrupt` when neither of the first two pages says where the trees begin. */
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

  close(): void {
    closeSync(this.#descriptor);
  }

  /** For whoever trusts the file; `check` does it by itself. */
  readTables(): void {
    this.#readTables(() => {});
  }

  /**
   * Walks every tree, tells what is wrong with its pages and calls `visit` for every entry of every
   * table. Returns how many pages nothing leads to: lost room.
   */
  check(tell: ReportCorruption, visit: (table: string, entry: PageEntry) => void): number {
    for (const problem of this.#meta.problems) tell('the first pages', problem);
    this.#readTables(tell);
    for (const [name, tree] of this.#tables) {
      for (const entry of this.#checkTree(name, tree, tell)) visit(name, entry);
    }
    this.#checkFreeList(tell);
    return this.#pageCount - META_PAGES - this.#usedCount - this.#freeCount;
  }

  /** Entries of a table in the order of their keys, after `check` or `readTables`; what is damaged is passed over. */
  *entries(table: string, range: Range = {}): Iterable<PageEntry> {
    const tree = this.#tables.get(table);
    if (tree !== undefined) yield* this.#walk(table, tree, range, undefined);
  }

  #readTables(tell: ReportCorruption): void {
    for (const entry of this.#checkTree(TABLE_LIST, this.#meta.main, tell)) {
      const value = entry.value();
      // As C writes it, with a zero behind it.
      const name = entry.key.toString('utf8').replace(/\0$/, '');
      if (value?.byteLength === TREE_BYTES) this.#tables.set(name, treeAt(value, 0));
      else tell(`table ${JSON.stringify(name)}`, 'it has no tree');
    }
  }

  get #pageCount(): number {
    return this.#meta.lastPage + 1;
  }

  *#checkTree(place: string, tree: Tree, tell: ReportCorruption): Iterable<PageEntry> {
    let entryCount = 0;
    let damageCount = 0;
    const count: ReportCorruption = (where, what) => {
      damageCount++;
      tell(where, what);
    };
    for (const entry of this.#walk(place, tree, {}, count)) {
      entryCount++;
      yield entry;
    }
    if (damageCount === 0 && entryCount !== tree.entryCount) {
      tell(place, `it holds ${entryCount} entries and says ${tree.entryCount}`);
    }
  }

  *#walk(
    place: string,
    tree: Tree,
    range: Range,
    tell: ReportCorruption | undefined,
  ): Iterable<PageEntry> {
    if (tree.root === null) return;
    if (tree.depth > DEPTH_MAX) {
      tell?.(place, `it is ${tree.depth} pages deep`);
      return;
    }
    const edge = `root of ${place}`;
    if (this.#refused.has(edge)) return;
    if (tell !== undefined && !this.#use(tree.root, 1, place, tell)) {
      this.#refused.add(edge);
      return;
    }
    yield* this.#walkPage({ place, tree, range, tell }, tree.root, 1, {});
  }

  *#walkPage(
    walk: { place: string; tree: Tree; range: Range; tell: ReportCorruption | undefined },
    number: number,
    level: number,
    bounds: Range,
  ): Iterable<PageEntry> {
    const { place, tree, range, tell } = walk;
    const where = `page ${number} (${place})`;
    const isLeaf = level === tree.depth;
    const nodes = this.#readNodes(number, isLeaf, (what) => tell?.(where, what));
    if (nodes === undefined) return;
    if (tell !== undefined) checkOrder(nodes, isLeaf, bounds, tree.hasNumbers, where, tell);
    for (const [i, node] of nodes.entries()) {
      if (isLeaf) {
        if (!isInside(node.key, range)) continue;
        if (tell !== undefined) this.#checkLongValue(node, where, tell);
        yield { key: node.key, value: () => this.#readValue(node) };
        continue;
      }
      // The first node of a branch has no key: its child begins where the branch does.
      const start = i === 0 ? bounds.start : node.key;
      const end = nodes[i + 1]?.key ?? bounds.end;
      if (range.start !== undefined && end !== undefined && range.start.compare(end) >= 0) continue;
      if (range.end !== undefined && start !== undefined && start.compare(range.end) >= 0) continue;
      const edge = `${number}/${i}`;
      if (this.#refused.has(edge)) continue;
      if (tell !== undefined && !this.#use(node.child, 1, where, tell)) {
        this.#refused.add(edge);
        continue;
      }
      yield* this.#walkPage(walk, node.child, level + 1, { start, end });
    }
  }

  /** Marks pages as part of a tree; false when they are not there or part of one already. */
  #use(first: number, count: number, where: string, tell: ReportCorruption): boolean {
    if (!(first >= META_PAGES && first + count <= this.#pageCount)) {
      tell(where, `it leads to page ${first} of ${this.#pageCount}`);
      return false;
    }
    for (let page = first; page < first + count; page++) {
      if (this.#isUsed(page)) {
        tell(where, `it leads to page ${page}, which something else leads to as well`);
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
    tell: (what: string) => void,
  ): readonly Node[] | undefined {
    const { pageBytes } = this.#meta;
    const page = this.#read(number * pageBytes, pageBytes);
    if (page === undefined) return void tell('it is not in the file');
    const found = page.readBigUInt64LE(0);
    if (found !== BigInt(number)) return void tell(`it has the number ${found}`);
    const flags = page.readUInt16LE(FLAGS_OFFSET);
    if (flags !== (isLeaf ? LEAF : BRANCH)) {
      return void tell(`its flags are ${flags}, expected those of a ${isLeaf ? 'leaf' : 'branch'}`);
    }
    const lower = page.readUInt16LE(LOWER_OFFSET);
    const upper = page.readUInt16LE(UPPER_OFFSET);
    if (lower % 2 !== 0 || lower > upper || HEADER_BYTES + upper > pageBytes || lower === 0) {
      return void tell(`its free space goes from ${lower} to ${upper}`);
    }
    const nodes: Node[] = [];
    let lowest = pageBytes - HEADER_BYTES;
    let nodeBytes = 0;
    for (let i = 0; i < lower >>> 1; i++) {
      const at = page.readUInt16LE(HEADER_BYTES + 2 * i);
      lowest = Math.min(lowest, at);
      const node = readNode(page, HEADER_BYTES + at, isLeaf);
      if (node === undefined) {
        tell(`entry ${i} reaches out of it`);
        continue;
      }
      nodes.push(node);
      const bytes = NODE_BYTES + node.key.byteLength + node.inline.byteLength;
      nodeBytes += bytes + (bytes % 2);
    }
    // Nodes lie without gaps from where free space ends to the end of the page.
    if (lowest !== upper || nodeBytes !== pageBytes - HEADER_BYTES - upper) {
      tell(
        `its ${nodes.length} entries take ${nodeBytes} bytes from ${lowest} on; free space ends at ${upper}`,
      );
    }
    return nodes;
  }

  #checkLongValue(node: Node, where: string, tell: ReportCorruption): void {
    if ((node.flags & IS_LONG_VALUE) === 0) return;
    const { first, count } = longValueOf(node);
    const expected = Math.ceil((HEADER_BYTES + node.byteLength) / this.#meta.pageBytes);
    const key = JSON.stringify(node.key.toString('latin1'));
    if (count !== expected) {
      tell(where, `the value of ${key} has ${count} pages, expected ${expected}`);
    } else if (this.#use(first, count, where, tell) && this.#readValue(node) === undefined) {
      tell(where, `the value of ${key} is not where it should be, on page ${first}`);
    }
  }

  #readValue(node: Node): Buffer | undefined {
    if ((node.flags & IS_LONG_VALUE) === 0) return node.inline;
    const { first, count } = longValueOf(node);
    const { pageBytes } = this.#meta;
    if (first + count > this.#pageCount || node.byteLength > count * pageBytes - HEADER_BYTES) {
      return undefined;
    }
    const bytes = this.#read(first * pageBytes, HEADER_BYTES + node.byteLength);
    if (bytes === undefined) return undefined;
    const isIt =
      bytes.readBigUInt64LE(0) === BigInt(first) &&
      bytes.readUInt16LE(FLAGS_OFFSET) === OVERFLOW &&
      bytes.readUInt32LE(LOWER_OFFSET) === count;
    return isIt ? bytes.subarray(HEADER_BYTES) : undefined;
  }

  /** A page that is in use and listed as free would be written over. */
  #checkFreeList(tell: ReportCorruption): void {
    for (const { key, value } of this.#checkTree(FREE_LIST, this.#meta.free, tell)) {
      // A key that is no number has been told of with its page.
      if (key.byteLength !== FREE_KEY_BYTES) continue;
      const bytes = value();
      const where = `entry ${key.readBigUInt64LE(0)} of ${FREE_LIST}`;
      if (bytes === undefined || bytes.byteLength < 8 || bytes.byteLength % 8 !== 0) {
        tell(where, 'it cannot be read');
        continue;
      }
      for (const [first, count] of freeRuns(bytes)) {
        if (!(first >= META_PAGES && first + count <= this.#pageCount)) {
          tell(where, `it names page ${first} of ${this.#pageCount}`);
          continue;
        }
        for (let page = first; page < first + count; page++) {
          if (this.#isUsed(page)) tell(where, `it names page ${page}, which is in use`);
          else this.#freeCount++;
        }
      }
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

function checkOrder(
  nodes: readonly Node[],
  isLeaf: boolean,
  bounds: Range,
  hasNumbers: boolean,
  where: string,
  tell: ReportCorruption,
): void {
  for (const [i, { key }] of nodes.entries()) {
    if (!isLeaf && i === 0) continue;
    if (hasNumbers) {
      if (key.byteLength !== FREE_KEY_BYTES)
        tell(where, `entry ${i} has a key of ${key.byteLength} bytes`);
      continue;
    }
    const previous = isLeaf || i > 1 ? nodes[i - 1]?.key : undefined;
    const isAscending = previous === undefined || previous.compare(key) < 0;
    if (!isAscending || !isInside(key, bounds))
      tell(where, `the key of entry ${i} is out of order`);
  }
}

function isInside(key: Buffer, { start, end }: Range): boolean {
  if (start !== undefined && key.compare(start) < 0) return false;
  return end === undefined || key.compare(end) < 0;
}

/** Runs of free pages: a negative number says how long the run is that begins at the next one. */
function* freeRuns(bytes: Buffer): Iterable<[first: number, count: number]> {
  const count = Math.min(Number(bytes.readBigUInt64LE(0)), bytes.byteLength / 8 - 1);
  for (let i = 1; i <= count; i++) {
    const entry = Number(bytes.readBigInt64LE(i * 8));
    if (entry > 0) yield [entry, 1];
    else if (entry < 0 && i < count) yield [Number(bytes.readBigInt64LE(++i * 8)), -entry];
  }
}
