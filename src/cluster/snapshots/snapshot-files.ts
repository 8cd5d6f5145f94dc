// Snapshots of one log as blobs: the state of the log in a store at some position. An index, written last and sealed,
// names the blobs with their digests; an earlier snapshot may have uploaded some, and a node a file before a record named
// it. The name of a blob contains its digest and a text that is unique to the upload, so one node never removes a blob that
// another one is uploading.

import { randomUUID } from 'node:crypto';
import { SagittaError } from '../../common/errors.js';
import { blockDigests, digestOfBlocks } from '../../platform/blocks.js';
import type { Store, StoreOperation, StoreSnapshot } from '../../storage/store.js';
import type { BlobDigest } from '../blobs/pinned-blobs.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { readAppliedPosition } from '../logs/applied-position.js';
import { isDamage } from '../logs/collection-log.js';
import { decodeOperations, encodeOperations } from '../logs/operations.js';
import { CATALOGUE } from '../logs/store-entries.js';
import {
  batchesOf,
  type FileShape,
  type NamedFile,
  type StoreLayout,
  stateOf,
} from './log-state.js';
import type { LogSnapshot } from './snapshot-record.js';

export interface SnapshotBlob extends BlobDigest {
  readonly blob: string;
}

interface StoredFile extends SnapshotBlob, FileShape {
  /** The name of the blob in the store. */
  readonly name: string;
}

export interface SnapshotIndex {
  readonly formatVersion: 1;
  readonly log: string;
  /** Batches of operations that write the entries, the records and, last, the applied position. */
  readonly state: readonly SnapshotBlob[];
  readonly files: readonly StoredFile[];
  /** The description of the files by the database of the node; null for the catalogue, which has no files. */
  readonly description: object | null;
}

const FOLDER = 'snapshots/';
/** Digits of the largest position: with leading zeros, text order is number order. */
const POSITION_DIGITS = 16;
const NAME_PATTERN = /^(\d{16})-([A-Za-z0-9]+)\.json$/;

/** The end of the name of a file for a record, before which the log was at a position. */
const SHARED_PATTERN = /-(\d{16})\.[0-9a-f]{8}$/;

/** The folder with the snapshots of a log. */
export function snapshotFolder(log: string): string {
  return `${FOLDER}${log}`;
}

/** The name of a file for a record of a log that has reached a position. */
export function sharedFileName(log: string, position: number, digest: string): string {
  const digits = String(position).padStart(POSITION_DIGITS, '0');
  return `${snapshotFolder(log)}/files/${digest}-${digits}.${randomUUID().slice(0, 8)}`;
}

/** The position in such a name; null for another blob. */
export function sharedFilePosition(blob: string): number | null {
  const [, digits] = SHARED_PATTERN.exec(blob) ?? [];
  return digits === undefined ? null : Number(digits);
}

/** The logs with blobs of snapshots. */
export async function logsWithSnapshots(blobs: SealedBlobs): Promise<string[]> {
  const logs = new Set<string>();
  for await (const name of blobs.list(FOLDER)) logs.add(name.split('/')[1]!);
  return [...logs];
}

export interface UploadOptions {
  readonly store: Store;
  readonly layout: StoreLayout;
  /** A snapshot that stays, whose blobs the new one may share; null for none. */
  readonly base: string | null;
  /** Ends the names of the snapshot and of new blobs; random by default. */
  readonly unique?: string;
  /** Throws when the upload is to stop. */
  readonly check: () => void;
}

export class SnapshotFiles {
  readonly #blobs: SealedBlobs;
  readonly #log: string;
  /** Digests of files in the store, by name and version. */
  #digests = new Map<string, BlobDigest>();

  constructor(blobs: SealedBlobs, log: string) {
    this.#blobs = blobs;
    this.#log = log;
  }

  /** Uploads the state of the log in the store at some moment after the call. Removes the new blobs when that fails. */
  async upload(options: UploadOptions): Promise<LogSnapshot> {
    const { store, base, check } = options;
    const unique = options.unique ?? randomUUID().slice(0, 8);
    const index = base === null ? undefined : await this.#readUsable(base);
    const known = new Map<string, SnapshotBlob>(
      [...(index?.state ?? []), ...(index?.files ?? [])].map((blob) => [blob.digest, blob]),
    );
    const uploaded: string[] = [];
    const put = async (found: BlobDigest, read: () => Promise<Uint8Array>) => {
      check();
      let blob = known.get(found.digest);
      if (blob === undefined) {
        const name = `${snapshotFolder(this.#log)}/files/${found.digest}-${unique}`;
        blob = { ...found, blob: name };
        uploaded.push(name);
        await this.#blobs.putPinned(name, [await read()]);
        known.set(found.digest, blob);
      }
      const { blob: name, byteCount, digest } = blob;
      return { blob: name, byteCount, digest };
    };
    try {
      return await store.withSnapshot(async (reader) => {
        const { position } = readAppliedPosition(reader, this.#log);
        const state: SnapshotBlob[] = [];
        for (const batch of batchesOf(stateOf(reader, options.layout, this.#log))) {
          const bytes = encodeOperations(batch);
          state.push(await put(digestOf(bytes), async () => bytes));
        }
        const { description, blobs: files } =
          this.#log === CATALOGUE
            ? { description: null, blobs: [] }
            : options.layout.filesOf(reader, this.#log);
        reader.endEntries();
        const stored: StoredFile[] = [];
        const digests = new Map<string, BlobDigest>();
        await this.#addShared(known, files);
        for (const { name, version, digest: given, kept, homeKey } of files) {
          const key = `${name} ${version}`;
          const shared = given === null ? undefined : known.get(given);
          const read = () => readFile(reader, name);
          const earlier = shared ?? this.#digests.get(key);
          const bytes = earlier === undefined ? await read() : null;
          const digest = earlier ?? digestOf(bytes!);
          digests.set(key, digest);
          const blob = await put(digest, async () => bytes ?? (await read()));
          stored.push({ name, kept, homeKey, ...blob });
        }
        this.#digests = digests;
        const name = `${String(position).padStart(POSITION_DIGITS, '0')}-${unique}`;
        const made: SnapshotIndex = {
          formatVersion: 1,
          log: this.#log,
          state,
          files: stored,
          description,
        };
        check();
        // The index may exist although this fails, so its blobs must stay.
        uploaded.length = 0;
        await this.#blobs.put(this.indexOf(name), [Buffer.from(JSON.stringify(made))]);
        return { name, position };
      });
    } catch (error) {
      // No index names these blobs, and no other upload uses their names.
      for (const name of uploaded) await this.#blobs.remove(name).catch(() => {});
      throw error;
    }
  }

  /** Adds the files that were shared for a record of this log: not for that of the source of a clone, or in another cluster. */
  async #addShared(known: Map<string, SnapshotBlob>, files: readonly NamedFile[]): Promise<void> {
    const missing = files.filter(({ digest, blob }) => blob !== null && !known.has(digest!));
    if (missing.length === 0) return;
    const existing = new Set<string>();
    for await (const blob of this.#blobs.list(`${snapshotFolder(this.#log)}/files/`)) {
      existing.add(blob);
    }
    for (const { blob, digest, byteLength: byteCount } of missing) {
      if (existing.has(blob!)) known.set(digest!, { blob: blob!, digest: digest!, byteCount });
    }
  }

  /** The blob with the index of a snapshot. */
  indexOf(name: string): string {
    return `${snapshotFolder(this.#log)}/${name}.json`;
  }

  /** The complete snapshots, oldest first. */
  async list(): Promise<LogSnapshot[]> {
    const folder = `${snapshotFolder(this.#log)}/`;
    const found: LogSnapshot[] = [];
    for await (const blob of this.#blobs.list(folder)) {
      const [, position, unique] = NAME_PATTERN.exec(blob.slice(folder.length)) ?? [];
      if (position === undefined) continue;
      found.push({ name: `${position}-${unique}`, position: Number(position) });
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * The blobs of the log that none of these snapshots uses, except files for records that were uploaded when the log had
   * reached `sharedSince` or a later position.
   */
  async findUnreferenced(
    names: readonly string[],
    sharedSince = Number.POSITIVE_INFINITY,
  ): Promise<string[]> {
    const kept = new Set<string>();
    for (const name of names) {
      kept.add(this.indexOf(name));
      const index = await this.#readUsable(name);
      for (const { blob } of [...(index?.state ?? []), ...(index?.files ?? [])]) kept.add(blob);
    }
    const unreferenced: string[] = [];
    for await (const blob of this.#blobs.list(`${snapshotFolder(this.#log)}/`)) {
      const isAwaited = (sharedFilePosition(blob) ?? -1) >= sharedSince;
      if (!kept.has(blob) && !isAwaited) unreferenced.push(blob);
    }
    return unreferenced;
  }

  /** Throws `data_corrupt`, also for a missing index. */
  async read(name: string): Promise<SnapshotIndex> {
    const blob = this.indexOf(name);
    const bytes = await this.#blobs.get(blob);
    const index = bytes && (JSON.parse(Buffer.from(bytes).toString()) as SnapshotIndex);
    if (index?.formatVersion === 1) return index;
    const found = index === undefined ? 'none' : `format ${index.formatVersion}`;
    throw new SagittaError(
      'data_corrupt',
      `Expected the shared file ${blob} with an index of format 1; found ${found}.`,
    );
  }

  /** The batches of operations. Throws `data_corrupt`. */
  async *readState(index: SnapshotIndex): AsyncIterable<StoreOperation[]> {
    for (const batch of index.state) {
      yield decodeOperations(await this.#blobs.getPinned(batch.blob, batch), batch.blob);
    }
  }

  /** Reads all blobs and reports the size of each. Throws `data_corrupt` for the first one that is damaged. */
  async verify(name: string, onBlob: (byteCount: number) => void): Promise<void> {
    const index = await this.read(name);
    for (const blob of [...index.state, ...index.files]) {
      await this.#blobs.getPinned(blob.blob, blob);
      onBlob(blob.byteCount);
    }
  }

  /** Removes all snapshots of the log. */
  async removeAll(): Promise<void> {
    // The indexes first, without which a snapshot is not complete.
    for (const { name } of await this.list()) await this.#blobs.remove(this.indexOf(name));
    for (const blob of await this.findUnreferenced([])) await this.#blobs.remove(blob);
  }

  /** Whether the index of a snapshot is intact. */
  async isUsable(name: string): Promise<boolean> {
    return (await this.#readUsable(name)) !== undefined;
  }

  /** Undefined for an index that is damaged or missing, whose snapshot and blobs cannot be used. */
  async #readUsable(name: string): Promise<SnapshotIndex | undefined> {
    try {
      return await this.read(name);
    } catch (error) {
      if (isDamage(error)) return undefined;
      throw error;
    }
  }
}

function digestOf(bytes: Uint8Array): BlobDigest {
  return { byteCount: bytes.length, digest: digestOfBlocks(blockDigests([bytes])) };
}

async function readFile(reader: StoreSnapshot, name: string): Promise<Uint8Array> {
  const bytes = await reader.readBlob(name);
  if (bytes === undefined) throw new Error(`Expected the file ${name} in the store; found none.`);
  return bytes;
}
