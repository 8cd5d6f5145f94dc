// The current import, being prepared or running. It is kept outside React, so that it continues while other views are
// shown.

import type { CollectionRecord } from '@sagitta/client';
import { whenAborted } from '../../../../../src/common/when-aborted.js';
import type { BadRow } from '../../../../../src/readers/reader-options.js';
import { connection } from '../../api/connection.js';
import { refreshCollection } from '../../api/queries.js';
import { SERVER_URL, session } from '../../api/session.js';
import { createStore } from '../../api/store.js';
import { draftOf, type ImportDraft, identityOf, importKeyOf } from './import-draft.js';
import type { FilePreview } from './import-reader.js';
import { Pace } from './pace.js';
import { type BatchProgress, FIRST_PROGRESS, runImport } from './run-import.js';
import { forget, readSaved, type SavedImport, save } from './saved-imports.js';
import { openWorkerReader, type WorkerReader } from './worker-reader.js';

/** A file with known columns, and the choices for its import. */
export interface OpenImport {
  readonly file: File;
  readonly preview: FilePreview;
  readonly draft: ImportDraft;
  /** The progress of an earlier import of the same file. */
  readonly saved: SavedImport | undefined;
}

interface ShownProgress {
  readonly done: BatchProgress;
  /** The share of the file read so far. */
  readonly share: number;
  /** Undefined while unknown. */
  readonly rowsPerSecond: number | undefined;
  readonly secondsLeft: number | undefined;
  /** At most BAD_ROWS_KEPT. */
  readonly badRows: readonly BadRow[];
  /** The reason why the last batch is being resent; undefined if the server accepts batches. */
  readonly waitingFor: unknown;
}

export type ImportState =
  | { readonly kind: 'empty' }
  | { readonly kind: 'opening'; readonly file: File }
  | { readonly kind: 'unreadable'; readonly file: File; readonly error: unknown }
  | ({ readonly kind: 'ready'; readonly error: unknown } & OpenImport)
  | ({ readonly kind: 'running'; readonly progress: ShownProgress } & OpenImport)
  | ({ readonly kind: 'done'; readonly progress: ShownProgress } & OpenImport)
  | ({
      readonly kind: 'stopped';
      readonly progress: ShownProgress;
      /** Undefined if the user stopped the import. */
      readonly error: unknown;
    } & OpenImport);

const BAD_ROWS_KEPT = 10_000;

export const importState = createStore<ImportState>({ kind: 'empty' });
let reader: WorkerReader | undefined;
let running: AbortController | undefined;

export async function chooseFile(file: File): Promise<void> {
  closeImport();
  importState.set({ kind: 'opening', file });
  const opened = openWorkerReader();
  reader = opened;
  try {
    const preview = await opened.open(file);
    const saved = await readSaved(identityOf(file, SERVER_URL));
    const draft = saved?.draft ?? draftOf(file.name, preview);
    if (reader !== opened) return;
    if (draft === undefined) throw new Error(noVectors(preview));
    importState.set({ kind: 'ready', file, preview, draft, saved, error: undefined });
  } catch (error) {
    if (reader === opened) importState.set({ kind: 'unreadable', file, error });
  }
}

function noVectors({ columns }: FilePreview): string {
  const listed = columns.slice(0, 20).join(', ');
  return `no column contains vectors or texts: expected words, lists of numbers of one length, or a column for each value such as d0, d1, …; found the columns ${listed}`;
}

export function changeDraft(draft: ImportDraft): void {
  const state = importState.get();
  if (state.kind === 'ready') importState.set({ ...state, draft });
}

/** Closes the file; imported rows stay in the collection. */
export function closeImport(): void {
  running?.abort();
  reader?.close();
  reader = undefined;
  importState.set({ kind: 'empty' });
}

/** Starts at the first row. */
export async function startImport(): Promise<void> {
  const state = importState.get();
  if (state.kind !== 'ready') return;
  const { file, draft } = state;
  let collection: CollectionRecord;
  try {
    collection = await openTarget(draft);
  } catch (error) {
    importState.set({ ...state, error });
    return;
  }
  // From here on the collection exists, even if the import fails.
  const settled = { ...draft, isNew: false };
  const key = importKeyOf(file, settled, crypto.getRandomValues(new Uint32Array(2)).join(''));
  const { created_at: createdAt } = collection;
  const start = { draft: settled, createdAt, progress: FIRST_PROGRESS, key };
  await run({ ...state, draft: settled }, start);
}

/** A new collection for texts has the built-in model and an index of their words. */
function openTarget({ isNew, collectionId: id, dimension, metric, plan }: ImportDraft) {
  const { collections } = session.get().client;
  if (!isNew) return collections.get(id);
  if (plan.vector.kind !== 'text') return collections.create({ id, dimension: dimension!, metric });
  const text = { fields: [plan.vector.column], language: 'english' } as const;
  return collections.create({ id, metric, embed: 'builtin', text });
}

/** Continues an import of the same file, optionally with a different handling of bad rows. */
export async function continueImport(
  change: Partial<Pick<ImportDraft, 'skipsBadRows'>> = {},
): Promise<void> {
  const state = importState.get();
  if (state.kind !== 'ready' && state.kind !== 'stopped') return;
  const saved = await readSaved(identityOf(state.file, SERVER_URL));
  if (saved === undefined) return;
  const draft = { ...saved.draft, ...change };
  // Batches end at different rows if bad rows are skipped, so they need different keys.
  const key = change.skipsBadRows === undefined ? saved.key : `${saved.key}s`;
  const badRows = state.kind === 'stopped' ? state.progress.badRows : [];
  await run({ ...state, draft }, { ...saved, draft, key }, badRows);
}

/** Stops the import, which can be continued later. */
export function cancelImport(): void {
  running?.abort();
}

async function run(
  { file, preview, draft, saved }: OpenImport,
  start: SavedImport,
  badRowsBefore: readonly BadRow[] = [],
) {
  const opened = reader!;
  const abort = new AbortController();
  running = abort;
  const name = identityOf(file, SERVER_URL);
  const open: OpenImport = { file, preview, draft, saved };
  let progress = shownAtStart(start.progress, badRowsBefore);
  const pace = new Pace(Date.now);
  const show = (change: Partial<ShownProgress>) => {
    progress = { ...progress, ...change };
    importState.set({ kind: 'running', ...open, progress });
  };
  show({});
  await save(name, start);
  try {
    const { plan, dimension, skipsBadRows } = draft;
    const startRow = start.progress.endRow;
    await opened.start({ plan, dimension, startRow, stopsAtBadRow: !skipsBadRows });
    await runImport(opened, targetOf(draft, abort.signal), {
      progress: start.progress,
      key: start.key,
      skipsBadRows,
      onEvent(event) {
        if (event.kind === 'waiting') return show({ waitingFor: event.error });
        const { progress: done, share } = event;
        const badRows = [...progress.badRows, ...event.badRows].slice(0, BAD_ROWS_KEPT);
        void save(name, { ...start, progress: done });
        show({ done, share, badRows, waitingFor: undefined, ...pace.add(done, share) });
      },
    });
    await forget(name);
    if (running === abort) importState.set({ kind: 'done', ...open, progress });
  } catch (error) {
    const shown = abort.signal.aborted ? undefined : error;
    if (reader === opened) importState.set({ kind: 'stopped', ...open, progress, error: shown });
  } finally {
    refreshCollection(draft.collectionId);
  }
}

function shownAtStart(done: BatchProgress, badRows: readonly BadRow[]): ShownProgress {
  return {
    done,
    share: 0,
    rowsPerSecond: undefined,
    secondsLeft: undefined,
    badRows,
    waitingFor: undefined,
  };
}

function targetOf({ collectionId, mode }: ImportDraft, signal: AbortSignal) {
  return {
    // Uses the current client, because the user may have signed in again since the start.
    write: (bytes: Uint8Array, { idempotencyKey }: { readonly idempotencyKey: string }) =>
      session
        .get()
        .client.collection(collectionId)
        .writeStream(() => [bytes], { format: 'arrow', mode, idempotencyKey, signal }),
    wait: (ms: number) =>
      new Promise<void>((resolve, reject) => {
        const end = () => {
          clearTimeout(timer);
          stopListening();
          stopWaiting();
        };
        const proceed = () => {
          end();
          resolve();
        };
        const timer = setTimeout(proceed, ms);
        // Ends the wait as soon as the server is back.
        const stopListening = connection.subscribe(() => {
          if (connection.get() === 'connected') proceed();
        });
        const stopWaiting = whenAborted(signal, () => {
          end();
          reject(signal.reason);
        });
      }),
  };
}
