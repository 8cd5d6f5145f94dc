// Releases what a failed test left behind, such as listening servers and running processes, which would prevent the
// test process from ending. scripts/test.mjs calls it at the end of each test file.

const leftovers = new Set<() => unknown>();

/** Runs the function at the end of the test file, unless the returned function is called first. */
export function releaseAtEnd(release: () => unknown): () => void {
  leftovers.add(release);
  return () => leftovers.delete(release);
}

export async function releaseLeftovers(): Promise<void> {
  const releases = [...leftovers];
  leftovers.clear();
  await Promise.allSettled(releases.map(async (release) => release()));
}
