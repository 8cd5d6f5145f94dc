// Waits until a collection contains what the client has seen before: a write, or the snapshot of a cursor.

import { field, validationError } from '../../common/errors.js';
import type { Collection } from './collection.js';

/**
 * Waits until the write `minSequence` is visible. Rejects with `invalid_request` if this node writes the collection and
 * never made that write: it belongs to another server, or was lost when a backup was restored.
 */
export async function reachSequence(
  collection: Collection,
  minSequence: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (minSequence <= collection.sequence) return;
  if (!collection.isWritable) return collection.waitForSequence(minSequence, signal);
  await collection.whenVisible();
  const { sequence: expected } = collection;
  if (minSequence <= expected) return;
  const detail = `Expected the sequence of a write of this collection, at most ${expected}; found ${minSequence}.`;
  throw validationError([
    {
      location: field('min_sequence'),
      code: 'invalid_request',
      detail,
      expected,
      actual: minSequence,
    },
  ]);
}

/**
 * Waits until this node has the snapshot of a cursor, which another node may have issued. Rejects with the signal's
 * reason.
 */
export async function reachCursor(
  { sequence }: { readonly sequence: number },
  collection: Collection,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (sequence <= collection.sequence) return;
  // The writing node has every sequence, but other nodes may apply a commit before it does.
  if (collection.isWritable) await collection.whenVisible();
  else await collection.waitForSequence(sequence, signal);
}
