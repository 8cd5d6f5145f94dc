// Damages a directory: draws a location from the regions of a file and what happens there, or what happens to the whole
// file. Every choice comes from `random`, so the seed of a case reproduces it.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { JOURNAL_FOLDER } from '../../../src/storage/journal-files.js';
import { MARK_FILE } from '../../../src/storage/store-mark.js';
import { type FrameRange, framesIn } from '../../storage/journal-frames.js';

/** `[from, to)` in a file. */
interface Region {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

export type FileKind = 'log' | 'base' | 'mark' | 'segment' | 'marker';

export interface FileToDamage {
  readonly kind: FileKind;
  /** Relative to the examined directory. */
  readonly path: string;
  /** The directory at an earlier time. */
  readonly olderFolder: string;
  /** The same file at that time; undefined if it did not exist. */
  readonly older: string | undefined;
  /** Other files of its kind in the directory. */
  readonly siblings: readonly string[];
  /** Files of its kind that belong to another store. */
  readonly strangers: readonly string[];
}

export interface Damage {
  readonly what: string;
  /** Names of files or folders, one of which a message about the damage must contain. */
  readonly suspects: readonly string[];
  /** Whether most files are older copies, which can be an intact earlier state. */
  readonly isEarlierState: boolean;
}

type Random = () => number;

const PAGE_BYTES = 4096;
const SECTOR_BYTES = 512;

export function kindOf(name: string): FileKind {
  if (name.endsWith('.arrow')) return 'segment';
  if (name.endsWith('.mark')) return 'mark';
  if (name.endsWith('.json')) return 'marker';
  return name.endsWith('.log') ? 'log' : 'base';
}

/** The files of a directory, as relative paths. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/** Inflicts one kind of damage. */
export function damage(directory: string, file: FileToDamage, random: Random): Damage {
  const bytes = readFileSync(join(directory, file.path));
  const isOfJournal = file.kind === 'log' || file.kind === 'base';
  const frames = isOfJournal ? framesIn(bytes) : [];
  const change: Change = { directory, bytes, frames, file, random };
  const kinds = DAMAGES.filter(({ isPossible = always }) => isPossible(change));
  const chosen = pick(
    kinds.flatMap((kind) => Array.from({ length: kind.weight }, () => kind)),
    random,
  );
  const { what, changed, isEarlierState = false } = chosen.make(change);
  const suspects = chosen.isInPlace ? [basename(file.path)] : suspectsOf(file, changed);
  for (const [path, content] of changed) {
    const target = join(directory, path);
    // Files may be shared with the intact sample.
    rmSync(target, { force: true });
    if (content === undefined) continue;
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
  }
  return { what: `${file.path}: ${what}`, suspects, isEarlierState };
}

/** Data missing from a journal file shows in other files that are compared with it, or that it names. */
function suspectsOf(file: FileToDamage, changed: Changed): string[] {
  const names = [...changed.keys()].map((path) => basename(path));
  const isCompared = ['log', 'base', 'mark'].includes(file.kind) || changed.size > 1;
  return isCompared ? [...names, JOURNAL_FOLDER, MARK_FILE] : names;
}

/** The new contents of files; undefined for a file that is removed. */
type Changed = ReadonlyMap<string, Buffer | undefined>;

interface Change {
  readonly directory: string;
  readonly bytes: Buffer;
  /** The frames of a journal file. */
  readonly frames: readonly FrameRange[];
  readonly file: FileToDamage;
  readonly random: Random;
}

interface Changes {
  readonly what: string;
  readonly changed: Changed;
  readonly isEarlierState?: boolean;
}

interface DamageKind {
  readonly weight: number;
  /** Whether the surrounding bytes still exist, so that a message must name this file. */
  readonly isInPlace?: true;
  readonly isPossible?: (change: Change) => boolean;
  readonly make: (change: Change) => Changes;
}

const always = () => true;
const hasOlder = ({ file }: Change) => file.older !== undefined;
const hasSiblings = ({ file }: Change) => file.siblings.length > 0;
const hasStrangers = ({ file }: Change) => file.strangers.length > 0;
const hasFrames = ({ frames }: Change) => frames.length > 0;
const hasManyFrames = ({ frames }: Change) => frames.length > 2;

const DAMAGES: readonly DamageKind[] = [
  { weight: 50, isInPlace: true, make: flip },
  { weight: 8, isInPlace: true, make: (change) => fill(change, SECTOR_BYTES) },
  { weight: 8, isInPlace: true, make: (change) => fill(change, PAGE_BYTES) },
  { weight: 3, make: zeroRest },
  { weight: 8, make: truncate },
  { weight: 3, isInPlace: true, make: lengthen },
  { weight: 2, make: ({ file }) => replaced(file, undefined, 'removed') },
  { weight: 2, isPossible: hasOlder, make: replaceByOlder },
  { weight: 2, isPossible: hasSiblings, make: replaceBySibling },
  { weight: 3, isPossible: hasSiblings, make: exchangeFiles },
  { weight: 3, isPossible: hasStrangers, make: replaceByStranger },
  { weight: 3, make: olderButOne },
  { weight: 6, isInPlace: true, make: foreignPage },
  { weight: 6, isInPlace: true, isPossible: hasOlder, make: lostWrite },
  { weight: 4, isPossible: hasManyFrames, make: exchangeFrames },
  { weight: 4, isPossible: hasManyFrames, make: removeFrame },
  { weight: 4, isPossible: hasFrames, make: replayFrame },
  {
    weight: 3,
    isPossible: (change) => hasFrames(change) && hasSiblings(change) && hasStrangers(change),
    make: foreignFrame,
  },
];

/** The regions of a file, so that rare ones are hit as often as common ones. */
function regionsOf({ bytes, file, frames }: Change): Region[] {
  if (frames.length > 0) return frameRegions(bytes, frames);
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
  if (file.kind !== 'segment' || length < 1_000) return [{ name: 'bytes', from: 0, to: length }];
  // The length of an Arrow file's footer is before its last six bytes.
  const footer = bytes.readInt32LE(length - 10);
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

/** The parts of frames, those of the last frame, and what follows it. */
function frameRegions(bytes: Buffer, frames: readonly FrameRange[]): Region[] {
  const byName = new Map<string, Region[]>();
  const add = (name: string, from: number, to: number) => {
    if (from === to) return;
    byName.set(name, [...(byName.get(name) ?? []), { name, from, to }]);
  };
  for (const [i, { at, directoryAt, bodiesAt, end }] of frames.entries()) {
    const which = i === frames.length - 1 ? 'last ' : '';
    add(`${which}header`, at, directoryAt);
    add(`${which}directory`, directoryAt, bodiesAt);
    add(`${which}bodies`, bodiesAt, end);
  }
  const { end } = frames.at(-1)!;
  add('next header', end, Math.min(end + 48, bytes.length));
  add('behind the frames', end, bytes.length);
  // Makes one region of each name as likely as one of another.
  const countMax = Math.max(...[...byName.values()].map(({ length }) => length));
  return [...byName.values()].flatMap((regions) =>
    Array.from({ length: countMax }, (_, i) => regions[i % regions.length]!),
  );
}

function pick<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)]!;
}

function placeIn(change: Change): { at: number; name: string } {
  const { name, from, to } = pick(regionsOf(change), change.random);
  return { at: from + Math.floor(change.random() * (to - from)), name };
}

function replaced({ path }: FileToDamage, content: Buffer | undefined, what: string): Changes {
  return { what, changed: new Map([[path, content]]) };
}

function flip(change: Change): Changes {
  const { at, name } = placeIn(change);
  const bit = Math.floor(change.random() * 8);
  const result = Buffer.from(change.bytes);
  result[at]! ^= 1 << bit;
  return replaced(change.file, result, `bit ${bit} of byte ${at} flipped (${name})`);
}

function fill(change: Change, byteLength: number): Changes {
  const { at, name } = placeIn(change);
  const from = at - (at % byteLength);
  const value = change.random() < 0.7 ? 0 : 255;
  const result = Buffer.from(change.bytes);
  result.fill(value, from, Math.min(from + byteLength, result.length));
  const what = `${byteLength} bytes from ${from} on are ${value} (${name})`;
  return replaced(change.file, result, what);
}

function zeroRest(change: Change): Changes {
  const { at, name } = placeIn(change);
  const from = change.random() < 0.5 ? at : at - (at % SECTOR_BYTES);
  const result = Buffer.from(change.bytes).fill(0, from);
  return replaced(change.file, result, `zeros from ${from} on (${name})`);
}

function truncate(change: Change): Changes {
  const { at, name } = placeIn(change);
  const isAligned = change.random() < 0.4;
  const byteLength = change.random() < 0.1 ? 0 : isAligned ? at - (at % PAGE_BYTES) : at;
  const what = `cut to ${byteLength} of ${change.bytes.length} bytes (${name})`;
  return replaced(change.file, change.bytes.subarray(0, byteLength), what);
}

function lengthen({ bytes, file, random }: Change): Changes {
  const added = Buffer.alloc(pick([1, 8, PAGE_BYTES, 100_000], random));
  const isZero = random() < 0.5;
  if (!isZero) for (let i = 0; i < added.length; i++) added[i] = Math.floor(random() * 256);
  const what = `${added.length} ${isZero ? 'zeros' : 'random bytes'} longer`;
  return replaced(file, Buffer.concat([bytes, added]), what);
}

function replaceByOlder({ file }: Change): Changes {
  return replaced(file, readFileSync(file.older!), 'replaced by an older copy');
}

function replaceBySibling({ directory, file, random }: Change): Changes {
  const sibling = pick(file.siblings, random);
  return replaced(file, readFileSync(join(directory, sibling)), `replaced by ${sibling}`);
}

function exchangeFiles({ directory, bytes, file, random }: Change): Changes {
  const sibling = pick(file.siblings, random);
  const changed = new Map([
    [file.path, readFileSync(join(directory, sibling))],
    [sibling, bytes],
  ]);
  return { what: `exchanged with ${sibling}`, changed };
}

function replaceByStranger({ file, random }: Change): Changes {
  const stranger = pick(file.strangers, random);
  const what = `replaced by ${basename(stranger)} of another store`;
  return replaced(file, readFileSync(stranger), what);
}

/** Replaces all other files by older copies. */
function olderButOne({ directory, file }: Change): Changes {
  const changed = new Map<string, Buffer | undefined>();
  for (const path of new Set([...filesIn(directory), ...filesIn(file.olderFolder)])) {
    if (path === file.path) continue;
    const older = join(file.olderFolder, path);
    changed.set(path, existsSync(older) ? readFileSync(older) : undefined);
  }
  return { what: 'all other files are older copies', changed, isEarlierState: true };
}

const pageOf = (bytes: Buffer, page: number) =>
  bytes.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES);

/** A write to the wrong location. */
function foreignPage(change: Change): Changes {
  const { directory, file, random } = change;
  const { at, name } = placeIn(change);
  const sources = [file.path, ...file.siblings].map((path) => join(directory, path));
  const source = pick([...sources, ...file.strangers], random);
  const from = readFileSync(source);
  const page = Math.floor(at / PAGE_BYTES);
  const fromPage = random() < 0.5 ? page : Math.floor((random() * from.length) / PAGE_BYTES);
  const result = Buffer.from(change.bytes);
  const foreign = pageOf(from, fromPage).subarray(0, result.length - page * PAGE_BYTES);
  result.set(foreign, page * PAGE_BYTES);
  return replaced(file, result, `page ${page} is page ${fromPage} of ${source} (${name})`);
}

/** A write whose sectors partly never reached the disk. */
function lostWrite(change: Change): Changes {
  const { at, name } = placeIn(change);
  const from = at - (at % SECTOR_BYTES);
  const to = Math.min(
    from + SECTOR_BYTES * (1 + Math.floor(change.random() * 16)),
    change.bytes.length,
  );
  const result = Buffer.from(change.bytes);
  result.fill(0, from, to);
  result.set(readFileSync(change.file.older!).subarray(from, to), from);
  return replaced(change.file, result, `bytes ${from} to ${to} are older ones (${name})`);
}

/** Reorders the frames of the file; what follows them stays. */
function reordered(
  { bytes, frames, file }: Change,
  order: readonly number[],
  what: string,
): Changes {
  const parts = order.map((i) => bytes.subarray(frames[i]!.at, frames[i]!.end));
  const rest = bytes.subarray(frames.at(-1)!.end);
  return replaced(file, Buffer.concat([...parts, rest]), what);
}

function exchangeFrames(change: Change): Changes {
  const { frames, random } = change;
  const first = Math.floor(random() * (frames.length - 1));
  const second =
    random() < 0.3 ? first + 1 : first + 1 + Math.floor(random() * (frames.length - first - 1));
  const order = [...frames.keys()];
  order[first] = second;
  order[second] = first;
  return reordered(change, order, `frames ${first} and ${second} exchanged`);
}

function removeFrame(change: Change): Changes {
  const { frames, random } = change;
  const removed = Math.floor(random() * frames.length);
  const order = [...frames.keys()].filter((i) => i !== removed);
  return reordered(change, order, `frame ${removed} of ${frames.length} cut out`);
}

/** Writes a frame after the last one. */
function followedBy({ bytes, frames, file }: Change, frame: Buffer, what: string): Changes {
  const { end } = frames.at(-1)!;
  const rest = bytes.subarray(end + frame.length);
  return replaced(file, Buffer.concat([bytes.subarray(0, end), frame, rest]), what);
}

function replayFrame(change: Change): Changes {
  const { bytes, frames, random } = change;
  const number = random() < 0.3 ? frames.length - 1 : Math.floor(random() * frames.length);
  const { at, end } = frames[number]!;
  const what = `frame ${number} of ${frames.length} is there again behind the last one`;
  return followedBy(change, bytes.subarray(at, end), what);
}

function foreignFrame(change: Change): Changes {
  const { directory, file, random } = change;
  const siblings = file.siblings.map((path) => join(directory, path));
  const source = pick(random() < 0.5 ? siblings : file.strangers, random);
  const bytes = readFileSync(source);
  const frames = framesIn(bytes);
  const frame = frames.length === 0 ? undefined : pick(frames, random);
  const copy = bytes.subarray(frame?.at ?? 0, frame?.end ?? 0);
  return followedBy(change, copy, `a frame of ${source} is behind the last one`);
}
