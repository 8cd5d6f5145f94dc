// Counts the rows of a streamed reply and charges the rate limit for them.

import type { RequestTelemetry } from '../telemetry/request-telemetry.js';

/**
 * Called with the number of rows of a chunk before it is sent. Waits for the rate limit; a rejection ends the
 * reply.
 */
export type Admit = (rowCount: number) => Promise<void>;

/** The request that the rows are charged to. */
interface ChargedRequest {
  readonly telemetry: Pick<RequestTelemetry, 'openStream'>;
  chargeOrWait(cost: number): Promise<void>;
}

/** @param costOf the cost of a number of rows for the rate limit. */
export async function* sendRows(
  request: ChargedRequest,
  costOf: (rowCount: number) => number,
  make: (admit: Admit) => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const counting = request.telemetry.openStream('out');
  let sentCount = 0;
  try {
    yield* make(async (rowCount) => {
      // The rows of the previous chunk have been sent.
      counting.advance(sentCount);
      await request.chargeOrWait(costOf(rowCount));
      sentCount += rowCount;
    });
    counting.advance(sentCount);
  } finally {
    counting.close();
  }
}
