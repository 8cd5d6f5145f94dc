// What a test that failed left behind: servers that listen, processes that run. They would keep the
// test process from ending, so scripts/test.mjs releases them at the end of each test file.

const leftovers = new Set<() => unknown>();

/** Runs the function at the end of the test file; returns one that says that it is not needed. */
export function releaseAtEnd(release: () => unknown): () => void {
  leftovers.add(release);
  return () => leftovers.delete(release);
}

export async function releaseLeftovers(): Promise<void> {
  const releases = [...leftovers];
  leftovers.clear();
  await Promise.allSettled(releases.map(async (release) => release()));
}
