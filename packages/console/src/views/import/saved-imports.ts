// The progress of imports, in this browser (IndexedDB): choosing the same file again goes on from there.

import type { ImportDraft } from './import-draft.js';
import type { BatchProgress } from './run-import.js';

export interface SavedImport {
  readonly draft: ImportDraft;
  /** When the collection was created: another one of the same name lacks what was imported. */
  readonly createdAt: string;
  readonly progress: BatchProgress;
  /** Begins the idempotency keys of this import. */
  readonly key: string;
}

const DATABASE = 'sagitta-import-progress';
const STORE = 'progress';

/** Undefined also where the browser keeps nothing, as in private windows. */
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
