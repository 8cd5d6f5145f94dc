// A store on disk: a journal for logs and values, and files for blobs. Commits that arrive during a write are grouped
// and share the next one. Each commit is validated before anything is written.

import { assert, SagittaError } from '../common/errors.js';
import type { FileMapping } from '../common/types.js';
import { type BackupSource, backupInProgress, writeBackup } from './backup.js';
import type { BlobFiles, RetainedFiles } from './blob-files.js';
import { CommitGroup } from './commit-group.js';
import type { DirectoryLock } from './directory-lock.js';
import type { FileParts } from './disk.js';
import type { Journal } from './journal.js';
import type { NewDirectory } from './new-directory.js';
import type { PartialBlobContent } from './partial-blob.js';
import type { PartialFilesUse } from './partial-files.js';
import { StateView } from './state-view.js';
import type { DiskStore, StoreOperation, StoreSnapshot } from './store.js';
import type { MarkFile } from './store-mark.js';
import { StoreState } from './store-state.js';

/** Maximum size of a group; a larger commit is written alone. */
const GROUP_BYTES_MAX = 64 * 1024 * 1024;

interface WaitingCommit {
  readonly operations: readonly StoreOperation[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface RecordStoreOptions {
  readonly directory: string;
  readonly journal: Journal;
  readonly blobs: BlobFiles;
  readonly lock: DirectoryLock;
  readonly mark: MarkFile;
  /** Null if the store already existed. */
  readonly newDirectory: NewDirectory | null;
  /** Called once if the disk fails. */
  readonly onFailure: (error: SagittaError) => void;
}

export class RecordStore extends StateView implements DiskStore {
  readonly #options: RecordStoreOptions;
  readonly #journal: Journal;
  readonly #blobs: BlobFiles;
  /** Names of dropped logs, which must not be used again. */
  readonly #dropped = new Set<string>();
  #waiting: WaitingCommit[] = [];
  #running: Promise<void> | undefined;
  #backup: Promise<unknown> | undefined;
  readonly #snapshots = new Set<Promise<unknown>>();
  /** Number of commits to write one by one, because together they did not fit on the disk. */
  #aloneCount = 0;
  #isClosing = false;
  #failure: SagittaError | undefined;

  /** The store owns and closes the journal, the blobs, the lock and the mark. */
  constructor(options: RecordStoreOptions) {
    super(options.journal.state, options.journal.files);
    this.#options = options;
    this.#journal = options.journal;
    this.#blobs = options.blobs;
  }

  commit(operations: readonly StoreOperation[]): Promise<void> {
    assert(!this.#isClosing, 'no commit after close');
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operations, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  writeBlob(name: string, parts: FileParts): Promise<void> {
    assert(!this.#isClosing, 'no blob is written after close');
    return this.#blobs.write(name, parts);
  }

  get canPartial(): boolean {
    return this.#blobs.canPartial;
  }

  writePartialBlob(name: string, content: PartialBlobContent): Promise<void> {
    assert(!this.#isClosing, 'no blob is written after close');
    return this.#blobs.writePartial(name, content);
  }

  readBlob(name: string): Promise<Uint8Array | undefined> {
    return this.#blobs.read(name);
  }

  mapBlob(name: string): Promise<FileMapping | null> {
    return this.#blobs.map(name);
  }

  copyBlob(from: string, to: string): Promise<void> {
    assert(!this.#isClosing, 'no blob is copied after close');
    return this.#blobs.copy(from, to);
  }

  removeBlob(name: string): Promise<void> {
    return this.#blobs.remove(name);
  }

  listBlobs(prefix = ''): Promise<string[]> {
    return this.#blobs.list(prefix);
  }

  async eraseLog(log: string): Promise<void> {
    if (this.#journal.state.logs.has(log)) await this.commit([{ kind: 'dropLog', log }]);
    this.#dropped.delete(log);
  }

  get partialUse(): PartialFilesUse | null {
    return this.#blobs.partialUse;
  }

  get storedBytes(): number {
    return this.#journal.files.byteLength;
  }

  async backup(
    folder: string,
    choose: Parameters<DiskStore['backup']>[1],
  ): ReturnType<DiskStore['backup']> {
    if (this.#backup !== undefined) throw backupInProgress();
    const making = this.#withState((state, files) => {
      const source: BackupSource = {
        directory: this.#options.directory,
        base: { state, ...this.#journal.origin },
        files: this.#journal.files,
        blobPath: files.pathOf,
        readPartial: files.readPartial,
        isStopping: () => this.#isClosing,
      };
      return writeBackup(source, folder, choose);
    });
    this.#backup = making.catch(() => {});
    try {
      return await making;
    } finally {
      this.#backup = undefined;
    }
  }

  withSnapshot<Result>(use: (snapshot: StoreSnapshot) => Promise<Result>): Promise<Result> {
    return this.#withState((state, files, endEntries) => {
      const view = new StateView(state, this.#journal.files);
      const snapshot = Object.assign(view, {
        readBlob: files.read,
        endEntries() {
          view.end();
          endEntries();
        },
      });
      return use(snapshot);
    });
  }

  /** Calls `use` with the current state, whose files are kept until `endEntries` is called or `use` settles. */
  async #withState<Result>(
    use: (state: StoreState, files: RetainedFiles, endEntries: () => void) => Promise<Result>,
  ): Promise<Result> {
    assert(!this.#isClosing, 'a state is not read after close');
    const release = this.#journal.files.retain();
    const state = new StoreState(this.#journal.state);
    const using = this.#blobs.retainWhile((files) => use(state, files, release)).finally(release);
    const ended = using.catch(() => {});
    this.#snapshots.add(ended);
    try {
      return await using;
    } finally {
      this.#snapshots.delete(ended);
    }
  }

  async close(): Promise<void> {
    await this.#closeFiles();
    await this.#options.lock.release();
  }

  async closeAndRemoveIfNew(): Promise<void> {
    const { lock, newDirectory } = this.#options;
    await this.#closeFiles();
    // Under the lock, nobody else can have written to the files.
    await newDirectory?.removeFiles();
    await lock.release();
    await newDirectory?.removeFolders();
  }

  async #closeFiles(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#snapshots);
    await this.#running;
    await this.#blobs.close();
    await this.#journal.close();
    await this.#options.mark.close();
  }

  async #run(): Promise<void> {
    // Commits made in the same iteration of the event loop share the first group.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = new CommitGroup(this.#journal.state, this.#dropped);
      const commits = this.#take(group);
      if (commits.length === 0) continue;
      try {
        if (!group.builder.isEmpty) await this.#journal.add(group.builder, group.mayUseReserve);
      } catch (error) {
        this.#handle(error, commits);
        continue;
      }
      for (const log of group.dropped) this.#dropped.add(log);
      this.#options.mark.advance(this.#journal.head);
      for (const { resolve } of commits) resolve();
      await this.#journal.tidy();
    }
    // Runs in the same turn as the last check of the queue, so a later commit starts a new run.
    this.#running = undefined;
  }

  /** Takes commits from the front of the queue until the group is full. */
  #take(group: CommitGroup): WaitingCommit[] {
    const commits: WaitingCommit[] = [];
    const countMax = this.#aloneCount > 0 ? 1 : Infinity;
    while (this.#waiting.length > 0 && commits.length < countMax) {
      const bytes = bytesOf(this.#waiting[0]!.operations);
      if (commits.length > 0 && group.builder.byteLength + bytes > GROUP_BYTES_MAX) break;
      const commit = this.#waiting.shift()!;
      try {
        group.add(commit.operations);
        commits.push(commit);
      } catch (error) {
        commit.reject(error);
      }
    }
    if (this.#aloneCount > 0) this.#aloneCount--;
    return commits;
  }

  #handle(error: unknown, commits: readonly WaitingCommit[]): void {
    if (!(error instanceof SagittaError)) {
      this.#fail(error, commits);
    } else if (commits.length > 1) {
      // Retries them one by one, so that the deletion of a collection does not fail because of large writes.
      this.#aloneCount = commits.length;
      this.#waiting.unshift(...commits);
    } else commits[0]!.reject(error);
  }

  /** After a failed sync the system may consider pages written that are not, so no further commit may build on them. */
  #fail(cause: unknown, commits: readonly WaitingCommit[]): void {
    // Clients read this message, so it contains no path; the log has the cause.
    this.#failure = new SagittaError(
      'stopping',
      'The disk reported an error while the journal was being written, so the service is stopping. It is unknown whether this write is on disk; repeat it after the next start.',
      { cause },
    );
    for (const { reject } of [...commits, ...this.#waiting.splice(0)]) reject(this.#failure);
    this.#options.onFailure(this.#failure);
  }
}

function bytesOf(operations: readonly StoreOperation[]): number {
  let byteCount = 0;
  for (const operation of operations) {
    if (operation.kind === 'append') byteCount += operation.record.byteLength;
    else if (operation.kind === 'put') byteCount += operation.value.byteLength;
  }
  return byteCount;
}
