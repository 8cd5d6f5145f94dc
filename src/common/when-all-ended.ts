// Waits for work in other threads on shared memory. Even after a failure, all of it must have ended before others use
// the memory.

/**
 * Resolves when all promises have resolved. Otherwise rejects with the first reason, in list order, once all have
 * settled.
 */
export async function whenAllEnded(promises: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(promises)) {
    if (result.status === 'rejected') throw result.reason;
  }
}
