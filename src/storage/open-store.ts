// Opens a data directory: locks it, reads its journal, compares it with the mark, and removes the leftovers of
// interrupted work. Creates a new store if there is none.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { SagittaError } from '../common/errors.js';
import { CONTROL_FOLDER } from '../common/unix-socket.js';
import { requireNoBackup } from './backup-marker.js';
import { type BaseSource, writeBase } from './base.js';
import { BlobFiles } from './blob-files.js';
import {
  BLOCK_DEADLINES,
  type BlockDeadlines,
  type BlockSourceModule,
  type FetchOptions,
} from './block-source.js';
import { LOCK_FOLDER, lockDirectory } from './directory-lock.js';
import { makeFolder, syncFolder, translateDiskError } from './disk.js';
import type { MappingRule } from './file-mapper.js';
import { DIGEST_BYTES } from './frame.js';
import { Journal } from './journal.js';
import { damagedFile, JOURNAL_FOLDER, JournalFiles } from './journal-files.js';
import { readJournal } from './journal-reader.js';
import { NewDirectory } from './new-directory.js';
import { RecordStore } from './record-store.js';
import type { DiskStore } from './store.js';
import { BLOB_FOLDER } from './store-format.js';
import { describeMark, MARK_FILE, type Mark, MarkFile, readMark } from './store-mark.js';
import { StoreState } from './store-state.js';
import { directoryWarnings, requireUsable, unusableDirectory } from './usable-directory.js';

const BLOCK_CACHE_BYTES = 1024 ** 3;

/**
 * Throws `data_directory_locked` if another process uses the directory; `configuration_invalid` if it is unusableDirectory, a
 * backup, or in another format; `data_corrupt` if the journal is damaged or older than its mark; and `storage_full`. On
 * failure, whatever was created in a new directory is removed.
 */
export async function openStore(options: {
  directory: string;
  /** Whether blobs may be mapped; `auto` by default. */
  mapping?: MappingRule;
  /** Where blobs that are kept in part get the rest from; null, the default, if there are none. */
  blocks?: BlockSourceModule | null;
  /** Disk space for fetched blocks; 1 GiB by default. */
  blockCacheBytes?: number;
  /** When a block that cannot be fetched is given up; only tests set it. */
  blockDeadlines?: Partial<BlockDeadlines>;
  /** Receives every block that was fetched. */
  onFetched?: FetchOptions['onFetched'];
  /** Receives a message for each repair, and for blocks that could not be fetched. */
  warn?: (message: string) => void;
  /**
   * Called once if the disk fails. Later commits are refused: the store must be closed and opened again, which finds
   * out what is on disk.
   */
  onFailure?: (error: SagittaError) => void;
  /** Log size at which the next log begins; 64 MiB unless a test sets it. */
  logBytesMax?: number;
  /** Ends reading the journal with its reason; the directory is then as it was before. */
  stopping?: AbortSignal | undefined;
}): Promise<DiskStore> {
  const {
    directory,
    mapping = 'auto',
    blocks = null,
    blockCacheBytes = BLOCK_CACHE_BYTES,
    blockDeadlines,
    onFetched = () => {},
    warn = () => {},
    onFailure = () => {},
    logBytesMax,
    stopping,
  } = options;
  await requireUsable(directory);
  await requireNoBackup(directory).catch((error: unknown) => {
    throw unusableDirectory(directory, error);
  });
  const newDirectory = new NewDirectory(directory);
  const lock = await lockDirectory(directory).catch(async (error: unknown) => {
    await newDirectory.removeFolders();
    throw error;
  });
  let files: JournalFiles | undefined;
  let journal: Journal | undefined;
  let markFile: MarkFile | undefined;
  try {
    await makeFolder(join(directory, JOURNAL_FOLDER));
    files = await JournalFiles.open(directory);
    const isNew = files.numbers.length === 0;
    if (isNew) newDirectory.markStoreNew();
    const ownNames = [LOCK_FOLDER, CONTROL_FOLDER, JOURNAL_FOLDER];
    for (const message of await directoryWarnings(directory, { isNew, ownNames })) warn(message);
    const blobs = await BlobFiles.open(join(directory, BLOB_FOLDER), {
      ...{ mapping, isNew },
      partial: blocks && {
        ...{ source: blocks, cacheBytes: blockCacheBytes, onFetched, warn },
        deadlines: { ...BLOCK_DEADLINES, ...blockDeadlines },
      },
    });
    const mark = await readMark(directory);
    if (isNew) {
      requireNothingLost(directory, blobs, mark);
      await makeStore(files);
    }
    const opened = files;
    const throwDamage = (file: number, what: string) => {
      throw damagedFile(opened.pathOf(file), what);
    };
    const content = await readJournal(opened, mark, throwDamage, stopping);
    // From here on, files change.
    stopping?.throwIfAborted();
    journal = await Journal.open({ directory, files, content, warn, logBytesMax });
    markFile = await MarkFile.open(directory, warn);
    if (isNew) await syncFolder(directory);
    if (content.isTorn) {
      const { file, offset } = content.last!;
      warn(
        `The last write to ${files.pathOf(file)} was not finished, as after a crash. It was never acknowledged and was cut off at offset ${offset}.`,
      );
    }
    const what = isNew ? undefined : describeMark(mark, content.head);
    if (what !== undefined) {
      warn(`The file ${join(directory, MARK_FILE)} ${what}. It was rewritten.`);
    }
    if (mark?.digest.equals(content.head.digest) !== true) await markFile.reset(content.head);
    return new RecordStore({
      ...{ directory, journal, blobs, lock, onFailure },
      mark: markFile,
      newDirectory: isNew ? newDirectory : null,
    });
  } catch (error) {
    // Checks the disk, so it must run before the directory is removed.
    const translated = unusableDirectory(directory, translateDiskError(error));
    await markFile?.close();
    await journal?.close();
    files?.close();
    await newDirectory.removeFiles();
    await lock.release();
    await newDirectory.removeFolders();
    throw translated;
  }
}

/** Throws `data_corrupt` if a store existed here. */
function requireNothingLost(directory: string, blobs: BlobFiles, mark: Mark | undefined): void {
  if (blobs.wasEmpty && (mark?.number ?? 0) === 0) return;
  throw new SagittaError(
    'data_corrupt',
    `The files of ${join(directory, JOURNAL_FOLDER)} are missing, but segment files or a commit mark from a lost store exist beside it. Restore a backup, or use another directory.`,
  );
}

/** Writes the first base, which is empty. The random digest tells the commits of different stores apart. */
async function makeStore(files: JournalFiles): Promise<void> {
  const source: BaseSource = {
    state: new StoreState(),
    head: { number: 0, digest: randomBytes(DIGEST_BYTES) },
    seed: randomBytes(4).readUInt32LE(),
    content: () => undefined,
  };
  await files.addBase(1, (path) => writeBase(path, 1, source));
}
