// Damages one file of a directory: a place is drawn from the regions of its kind, then what happens there. Every
// choice comes from `random`, so that the seed of a case repeats it.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LmdbPages } from '../../../src/storage/lmdb-pages.js';

/** `[from, to)` in a file. */
interface Region {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

export type FileKind = 'tables' | 'mark' | 'segment' | 'marker' | 'lmdb lock';

export interface FileToDamage {
  readonly kind: FileKind;
  /** In the directory that is examined. */
  readonly path: string;
  /** The same file at an earlier time; undefined where there was none. */
  readonly older: string | undefined;
  /** Others of its kind. */
  readonly siblings: readonly string[];
}

type Random = () => number;

const PAGE_BYTES = 4096;
const PAGE_KINDS: Readonly<Record<number, string>> = { 1: 'branch', 2: 'leaf', 4: 'long value' };

export function kindOf(name: string): FileKind {
  if (name.endsWith('.arrow')) return 'segment';
  if (name.endsWith('.mark')) return 'mark';
  if (name.endsWith('.json')) return 'marker';
  return name.endsWith('-lock') ? 'lmdb lock' : 'tables';
}

/** Does one damage and returns what it was. */
export function damage(directory: string, file: FileToDamage, random: Random): string {
  const path = join(directory, file.path);
  const kinds = DAMAGES.filter(({ isPossible }) => isPossible(file));
  const chosen = pick(
    kinds.flatMap((kind) => Array.from({ length: kind.weight }, () => kind)),
    random,
  );
  const bytes = readFileSync(path);
  const { result, what } = chosen.change({ bytes, file, random, path });
  // Files may be shared with the intact sample.
  rmSync(path);
  if (result !== undefined) writeFileSync(path, result);
  return `${file.path}: ${what}`;
}

interface Change {
  readonly bytes: Buffer;
  readonly file: FileToDamage;
  readonly random: Random;
  readonly path: string;
}

interface DamageKind {
  readonly weight: number;
  readonly isPossible: (file: FileToDamage) => boolean;
  readonly change: (change: Change) => { result: Buffer | undefined; what: string };
}

const always = () => true;
const hasPages = ({ kind }: FileToDamage) => kind === 'tables';
const hasOlder = ({ older }: FileToDamage) => older !== undefined;

const DAMAGES: readonly DamageKind[] = [
  { weight: 50, isPossible: always, change: flip },
  { weight: 8, isPossible: always, change: (change) => fill(change, 64) },
  { weight: 6, isPossible: always, change: (change) => fill(change, PAGE_BYTES) },
  { weight: 5, isPossible: always, change: truncate },
  { weight: 2, isPossible: always, change: extend },
  { weight: 1, isPossible: always, change: () => ({ result: undefined, what: 'removed' }) },
  { weight: 2, isPossible: hasOlder, change: replaceByOlder },
  { weight: 2, isPossible: ({ siblings }) => siblings.length > 0, change: replaceBySibling },
  { weight: 8, isPossible: hasPages, change: swapPages },
  { weight: 10, isPossible: (file) => hasPages(file) && hasOlder(file), change: olderPage },
  { weight: 4, isPossible: (file) => hasPages(file) && hasOlder(file), change: tornPage },
];

/** What the bytes of a file are, so that rare parts are hit as often as common ones. */
function regionsOf({ bytes, file, path }: Change): Region[] {
  if (file.kind === 'tables') return pageRegions(bytes, path);
  if (file.kind === 'mark') {
    return [0, PAGE_BYTES].flatMap((slot) => [
      { name: `magic at ${slot}`, from: slot, to: slot + 8 },
      { name: `number at ${slot}`, from: slot + 8, to: slot + 16 },
      { name: `digest at ${slot}`, from: slot + 16, to: slot + 32 },
      { name: `checksum at ${slot}`, from: slot + 32, to: slot + 36 },
      { name: `rest at ${slot}`, from: slot + 36, to: slot + PAGE_BYTES },
    ]);
  }
  const { length } = bytes;
  if (file.kind === 'marker' || length < 1_000) return [{ name: 'text', from: 0, to: length }];
  // The footer of an Arrow file has its length before the last six bytes.
  const footer = file.kind === 'segment' ? bytes.readInt32LE(length - 10) : 0;
  const parts = Array.from({ length: 16 }, (_, i) => ({
    name: `part ${i} of 16`,
    from: Math.floor((length * i) / 16),
    to: Math.floor((length * (i + 1)) / 16),
  }));
  return [
    { name: 'first bytes', from: 0, to: 64 },
    { name: 'footer', from: Math.max(0, length - 10 - footer), to: length - 10 },
    { name: 'last bytes', from: length - 10, to: length },
    ...parts,
  ];
}

/** Header, offsets and content of the pages of each kind. */
function pageRegions(bytes: Buffer, path: string): Region[] {
  const free = freePagesOf(path);
  const byKind = new Map<string, Region[]>();
  const add = (kind: string, from: number, to: number) => {
    const regions = byKind.get(kind) ?? [];
    byKind.set(kind, regions);
    if (from < to) regions.push({ name: kind, from, to: Math.min(to, bytes.length) });
  };
  for (let at = 0; at < bytes.length; at += PAGE_BYTES) {
    const page = at / PAGE_BYTES;
    if (page < 2) {
      add('meta header', at, at + 24);
      add('meta', at + 24, at + 168);
      continue;
    }
    const kind = free.has(page) ? 'free' : (PAGE_KINDS[bytes.readUInt16LE(at + 18)] ?? 'other');
    add(`${kind} header`, at, at + 24);
    if (kind !== 'branch' && kind !== 'leaf') {
      add(kind, at + 24, at + PAGE_BYTES);
      continue;
    }
    const lower = at + 24 + bytes.readUInt16LE(at + 20);
    const upper = at + 24 + bytes.readUInt16LE(at + 22);
    add(`${kind} offsets`, at + 24, lower);
    add(`${kind} gap`, lower, upper);
    add(`${kind} entries`, upper, at + PAGE_BYTES);
    for (let offset = at + 24; offset < lower; offset += 2) {
      const node = at + 24 + bytes.readUInt16LE(offset);
      add(`${kind} entry header`, node, node + 8);
    }
  }
  // One region of each kind is as likely as one of another.
  const countMax = Math.max(...[...byKind.values()].map(({ length }) => length));
  return [...byKind.values()].flatMap((regions) =>
    Array.from({ length: countMax }, (_, i) => regions[i % regions.length]!),
  );
}

function freePagesOf(path: string): Set<number> {
  const free = new Set<number>();
  const pages = LmdbPages.open(path);
  try {
    for (const [first, count] of pages.freeRuns()) {
      for (let page = first; page < first + count; page++) free.add(page);
    }
  } finally {
    pages.close();
  }
  return free;
}

function pick<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)]!;
}

function placeIn(change: Change): { at: number; name: string } {
  const { name, from, to } = pick(regionsOf(change), change.random);
  return { at: from + Math.floor(change.random() * (to - from)), name };
}

function flip(change: Change) {
  const { at, name } = placeIn(change);
  const bit = Math.floor(change.random() * 8);
  const result = Buffer.from(change.bytes);
  result[at]! ^= 1 << bit;
  return { result, what: `bit ${bit} of byte ${at} flipped (${name})` };
}

function fill(change: Change, byteLength: number) {
  const { at, name } = placeIn(change);
  const from = at - (at % byteLength);
  const value = change.random() < 0.7 ? 0 : 255;
  const result = Buffer.from(change.bytes);
  result.fill(value, from, Math.min(from + byteLength, result.length));
  return { result, what: `${byteLength} bytes from ${from} on are ${value} (${name})` };
}

function truncate(change: Change) {
  const { at, name } = placeIn(change);
  const isAligned = change.random() < 0.4;
  const byteLength = change.random() < 0.1 ? 0 : isAligned ? at - (at % PAGE_BYTES) : at;
  return {
    result: change.bytes.subarray(0, byteLength),
    what: `cut to ${byteLength} of ${change.bytes.length} bytes (${name})`,
  };
}

function extend({ bytes, random }: Change) {
  const added = Buffer.alloc(pick([1, 8, PAGE_BYTES, 100_000], random), random() < 0.5 ? 0 : 0xa5);
  return { result: Buffer.concat([bytes, added]), what: `${added.length} bytes longer` };
}

function replaceByOlder({ file }: Change) {
  return { result: readFileSync(file.older!), what: 'replaced by an older copy' };
}

function replaceBySibling({ file, random }: Change) {
  const sibling = pick(file.siblings, random);
  return { result: readFileSync(sibling), what: `replaced by ${sibling}` };
}

const pageOf = (bytes: Buffer, page: number) =>
  bytes.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES);

function swapPages(change: Change) {
  const first = Math.floor(placeIn(change).at / PAGE_BYTES);
  const second = Math.floor(placeIn(change).at / PAGE_BYTES);
  const result = Buffer.from(change.bytes);
  result.set(pageOf(change.bytes, second), first * PAGE_BYTES);
  result.set(pageOf(change.bytes, first), second * PAGE_BYTES);
  return { result, what: `pages ${first} and ${second} swapped` };
}

/** A write that never reached the disk. */
function olderPage(change: Change) {
  const { at, name } = placeIn(change);
  const page = Math.floor(at / PAGE_BYTES);
  const result = Buffer.from(change.bytes);
  result.set(pageOf(readFileSync(change.file.older!), page), page * PAGE_BYTES);
  return { result, what: `page ${page} is an older one (${name})` };
}

/** A write of which some sectors reached the disk. */
function tornPage(change: Change) {
  const { at, name } = placeIn(change);
  const page = Math.floor(at / PAGE_BYTES);
  const sector = 512 * (1 + Math.floor(change.random() * 7));
  const old = pageOf(readFileSync(change.file.older!), page);
  const result = Buffer.from(change.bytes);
  const isFirstOld = change.random() < 0.5;
  const part = isFirstOld ? old.subarray(0, sector) : old.subarray(sector);
  result.set(part, page * PAGE_BYTES + (isFirstOld ? 0 : sector));
  const which = isFirstOld ? 'before' : 'after';
  return { result, what: `page ${page} is an older one ${which} byte ${sector} (${name})` };
}
