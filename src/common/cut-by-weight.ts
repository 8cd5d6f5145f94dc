// Cuts a list into batches that are bounded by count and by a weight such as bytes or hits.

/**
 * Cuts items in order into slices within both bounds. Each slice contains at least one item, even if that exceeds a
 * bound.
 */
export function cutByWeight<Item>(
  items: readonly Item[],
  bounds: {
    readonly countMax?: number;
    readonly weightMax: number;
    readonly weightOf: (item: Item) => number;
  },
): Item[][] {
  const { countMax = Number.POSITIVE_INFINITY, weightMax, weightOf } = bounds;
  const slices: Item[][] = [];
  let slice: Item[] = [];
  let sliceWeight = 0;
  for (const item of items) {
    const weight = weightOf(item);
    const isFull = slice.length === countMax || sliceWeight + weight > weightMax;
    if (isFull && slice.length > 0) {
      slices.push(slice);
      slice = [];
      sliceWeight = 0;
    }
    slice.push(item);
    sliceWeight += weight;
  }
  if (slice.length > 0) slices.push(slice);
  return slices;
}
