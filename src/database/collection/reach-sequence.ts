// Waits until a collection has what a request has seen elsewhere: its own write, or the page of a cursor.

import { field, validationError } from '../../common/errors.js';
import type { Collection } from './collection.js';

/**
 * Waits until the write is visible. Rejects with `invalid_request` where the collection is written and has no
 * such write: it comes from another server, or was lost with a backup that was restored.
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
 * Waits until this process has the snapshot of a cursor, which another node of a cluster may have issued. Rejects with the
 * signal's reason.
 */
export async function reachCursor(
  { sequence }: { readonly sequence: number },
  collection: Collection,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (sequence <= collection.sequence) return;
  // Whoever writes has every sequence, but others may have applied a commit before it has.
  if (collection.isWritable) await collection.whenVisible();
  else await collection.waitForSequence(sequence, signal);
}
