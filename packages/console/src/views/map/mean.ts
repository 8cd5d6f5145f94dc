// The mean of vectors, in a file of its own so that tests can import it without the page.

/** @param vectors at least one, of the same dimension */
export function meanOf(vectors: readonly (readonly number[])[]): number[] {
  const sums = new Float64Array(vectors[0]!.length);
  for (const values of vectors) {
    for (let at = 0; at < sums.length; at++) sums[at]! += values[at]!;
  }
  // Nine digits distinguish all float32 values; more would only make the text longer.
  return Array.from(sums, (sum) => Number((sum / vectors.length).toPrecision(9)));
}
