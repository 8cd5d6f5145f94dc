// Asynchronous work on many items, a few of them at a time.

/** Rejects with the first error, while the work on other items continues. */
export async function forEachAtOnce<Item>(
  items: readonly Item[],
  countMax: number,
  use: (item: Item) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) await use(item);
  };
  await Promise.all(Array.from({ length: countMax }, worker));
}
