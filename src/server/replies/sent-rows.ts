// Rows that go out in a reply which is made while it is sent: paid for before they go, and counted.

import type { RequestContext } from '../request-context.js';

/** Asked before each piece of so many rows; what it throws ends the reply. */
export type Pay = (rowCount: number) => Promise<void>;

/** @param costOf what so many rows cost, in the measure of `charge`. */
export async function* sendRows(
  request: RequestContext<unknown>,
  costOf: (rowCount: number) => number,
  make: (pay: Pay) => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const counting = request.telemetry.openStream('out');
  let sentCount = 0;
  try {
    yield* make(async (rowCount) => {
      // Those of the piece before are on their way by now.
      counting.advance(sentCount);
      await request.chargeOrWait(costOf(rowCount));
      sentCount += rowCount;
    });
    counting.advance(sentCount);
  } finally {
    counting.close();
  }
}
