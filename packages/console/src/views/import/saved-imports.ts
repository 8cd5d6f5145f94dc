// Stores the progress of imports in the browser (IndexedDB), so that choosing the same file again can continue one.

import type { ImportDraft } from './import-draft.js';
import type { BatchProgress } from './run-import.js';

export interface SavedImport {
  readonly draft: ImportDraft;
  /** The creation time of the collection: a new collection with the same id lacks the imported rows. */
  readonly createdAt: string;
  readonly progress: BatchProgress;
  /** The prefix of the idempotency keys of this import. */
  readonly key: string;
}

const DATABASE = 'sagitta-import-progress';
const STORE = 'progress';

/** Undefined too if the browser stores nothing, as in private windows. */
export async function readSaved(name: string): Promise<SavedImport | undefined> {
  return withStore('readonly', (store) => store.get(name)).catch(() => undefined);
}

export async function save(name: string, saved: SavedImport): Promise<void> {
  await withStore('readwrite', (store) => store.put(saved, name)).catch(() => undefined);
}

export async function forget(name: string): Promise<void> {
  await withStore('readwrite', (store) => store.delete(name)).catch(() => undefined);
}

async function withStore<Value>(
  mode: IDBTransactionMode,
  run: (store: IDBObjectStore) => IDBRequest<Value>,
): Promise<Value> {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  const database = await done(opening);
  try {
    return await done(run(database.transaction(STORE, mode).objectStore(STORE)));
  } finally {
    database.close();
  }
}

function done<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
