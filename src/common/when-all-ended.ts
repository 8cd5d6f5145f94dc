// Waiting for work in other threads that shares memory: also after a failure, none of it may be under way
// when others use the memory.

/** Resolves when all have resolved. Rejects with the first reason, in their order, when all have ended. */
export async function whenAllEnded(promises: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(promises)) {
    if (result.status === 'rejected') throw result.reason;
  }
}
