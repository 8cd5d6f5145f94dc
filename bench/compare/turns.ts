// Turns of two sides on a machine whose speed changes from second to second. The sides alternate, and their
// ratio is the median over neighbouring turns, which find the machine in the same state.

import { quantile } from '../engine/timing.js';

export interface TurnPlan {
  /** The number of turns of each side. */
  readonly turnCount: number;
  /** The minimum duration of a turn. */
  readonly turnSeconds: number;
}

/** A figure of both sides. */
export interface Compared {
  /** Medians over the turns. */
  readonly before: number;
  readonly after: number;
  /** After divided by before. */
  readonly ratio: number;
}

/** Calls `turn` with 0 for before and 1 for after, as often as planned for each. */
export async function takeTurns(
  { turnCount }: TurnPlan,
  turn: (side: 0 | 1) => Promise<number>,
): Promise<Compared> {
  const before: number[] = [];
  const after: number[] = [];
  for (let i = 0; i < turnCount; i++) {
    // Each side comes first in every second pair, so that neither always follows a pause.
    if (i % 2 === 0) before.push(await turn(0));
    after.push(await turn(1));
    if (i % 2 === 1) before.push(await turn(0));
  }
  return compareFigures(before, after);
}

/** Both arrays have the same number of figures, in the order in which they were measured. */
export function compareFigures(before: readonly number[], after: readonly number[]): Compared {
  const ratios = before.map((figure, i) => after[i]! / figure);
  return {
    before: quantile(before, 0.5),
    after: quantile(after, 0.5),
    ratio: quantile(ratios, 0.5),
  };
}
