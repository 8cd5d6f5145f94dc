// The user's choices for an import: columns, target and mode. Checks the choices and names the import.

import type { CollectionRecord, Metric, WriteMode } from '@sagitta/client';
import { type ImportPlan, otherColumns, type VectorPlan } from './import-plan.js';
import type { FilePreview } from './import-reader.js';

export interface ImportDraft {
  readonly plan: ImportPlan;
  /** Dimension of the chosen vectors; undefined for texts. */
  readonly dimension: number | undefined;
  /** Whether the import creates the collection. */
  readonly isNew: boolean;
  readonly collectionId: string;
  /** Metric of a new collection. */
  readonly metric: Metric;
  readonly mode: WriteMode;
  readonly skipsBadRows: boolean;
}

/** The proposed choices; undefined if no column contains vectors or texts. */
export function draftOf(fileName: string, { plan, vectorChoices }: FilePreview) {
  if (plan === undefined) return undefined;
  const draft: ImportDraft = {
    plan,
    dimension: vectorChoices[0]?.dimension,
    isNew: true,
    collectionId: collectionIdOf(fileName),
    metric: 'cosine',
    mode: 'upsert',
    skipsBadRows: false,
  };
  return draft;
}

/** The name of the file without characters that ids of collections cannot contain. */
export function collectionIdOf(fileName: string): string {
  const name = fileName.replace(/(\.[a-z]\w{0,7}){1,2}$/i, '').replace(/[^\w.-]+/g, '-');
  return name.replace(/^[-.]+|[-.]+$/g, '').slice(0, 64) || 'import';
}

/** Changes the vectors; columns that they no longer use become metadata. */
export function withVector(
  draft: ImportDraft,
  columns: readonly string[],
  vector: VectorPlan,
  dimension: number | undefined,
): ImportDraft {
  const { idColumn } = draft.plan;
  const metadataColumns = otherColumns(columns, idColumn, vector);
  return { ...draft, dimension, plan: { idColumn, vector, metadataColumns } };
}

/** Changes the id column; the previous one becomes metadata. */
export function withIdColumn(
  draft: ImportDraft,
  columns: readonly string[],
  idColumn: string | undefined,
): ImportDraft {
  const { vector } = draft.plan;
  const metadataColumns = otherColumns(columns, idColumn, vector);
  return { ...draft, plan: { idColumn, vector, metadataColumns } };
}

/** An error message about the target; undefined if the import can start. */
export function targetProblem(
  { isNew, collectionId, dimension, mode, plan }: ImportDraft,
  collections: readonly CollectionRecord[],
): string | undefined {
  const target = collections.find(({ id }) => id === collectionId);
  if (mode === 'update' && plan.idColumn === undefined) {
    return 'To replace only existing vectors, choose the column with their ids.';
  }
  if (isNew) {
    if (collectionId === '') return 'Expected the name of the new collection.';
    return target === undefined
      ? undefined
      : `The collection ${collectionId} already exists; choose another name, or import into it.`;
  }
  if (target === undefined) return 'Choose a collection.';
  if (accepts(target, dimension)) return undefined;
  return dimension === undefined
    ? 'The collection has no model that turns texts into vectors.'
    : `The file has vectors of ${dimension} values, the collection has ${target.dimension ?? 'none'}.`;
}

/** Whether a collection can hold vectors of this dimension, or those of texts if it is undefined. */
export function accepts(target: CollectionRecord, dimension: number | undefined): boolean {
  return dimension === undefined ? target.embed !== undefined : target.dimension === dimension;
}

/** The members of a `File` that identify it. */
interface FileIdentity {
  readonly name: string;
  readonly size: number;
  readonly lastModified: number;
}

/** The name under which the progress of the file is saved. */
export function identityOf({ name, size, lastModified }: FileIdentity, serverUrl: string): string {
  return JSON.stringify([serverUrl, name, size, lastModified]);
}

/**
 * The prefix of an import's idempotency keys. `run` is new for each import that starts at the first row, so that a file
 * can be imported again after its vectors have been deleted.
 */
export function importKeyOf(file: FileIdentity, draft: ImportDraft, run: string): string {
  const { name, size, lastModified } = file;
  return `console-${hash(JSON.stringify([name, size, lastModified, draft]))}-${run}`;
}

/** 64-bit FNV-1a as hexadecimal digits; `crypto.subtle` exists only over HTTPS. */
function hash(text: string): string {
  let state = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) {
    state = BigInt.asUintN(64, (state ^ BigInt(byte)) * 0x100000001b3n);
  }
  return state.toString(16).padStart(16, '0');
}
