// Parameters of the graph indexes. They are compared at equal quality: with the smallest search width (ef)
// that reaches the required recall.

import type { PeerCase } from './peer.js';

/** Neighbours per node, and the search width while building. */
export const GRAPH = { connectivity: 16, efConstruction: 200 } as const;
const RECALL_MIN = 0.99;
const EF_MIN = 16;
const EF_MAX = 4_096;

/** Finds the smallest ef with sufficient recall, increasing it by a third per attempt. `findAll` runs all queries. */
export function chooseEf(
  { truth }: PeerCase,
  findAll: (ef: number) => readonly (readonly number[])[],
): number {
  let ef = EF_MIN;
  for (;;) {
    const found = findAll(ef);
    const trueCount = truth.reduce((sum, rows) => sum + rows.length, 0);
    const foundCount = truth.reduce((sum, rows, query) => {
      return sum + rows.filter((row) => found[query]!.includes(row)).length;
    }, 0);
    if (foundCount >= RECALL_MIN * trueCount) return ef;
    if (ef >= EF_MAX) {
      throw new Error(
        `expected a recall of ${RECALL_MIN} at ef = ${ef}, found ${foundCount / trueCount}`,
      );
    }
    ef = Math.min(EF_MAX, Math.ceil((ef * 4) / 3));
  }
}
