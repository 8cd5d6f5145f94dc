// Idempotency keys of requests with one effect: a write that is sent twice happens once. The reply is
// committed together with the effect, so that a crash between the two cannot be seen.

import type { CommitTogether, IdempotencyRequest, StoredReply } from './api.js';
import type { IdempotencyClaims } from './idempotency-claims.js';

/** See DatabaseService.runIdempotent. */
export async function runIdempotent(
  claims: IdempotencyClaims,
  request: IdempotencyRequest,
  perform: (
    attach: <Result>(encode: (result: Result) => StoredReply) => CommitTogether<Result>,
  ) => Promise<StoredReply>,
): Promise<{ reply: StoredReply; isReplay: boolean }> {
  const claim = claims.claim(request);
  try {
    const kept = claim.stored?.reply;
    if (kept != null) return { reply: kept, isReplay: true };
    let isAttached = false;
    const reply = await perform((encode) => (result) => {
      isAttached = true;
      return claim.keepReply(encode(result));
    });
    if (!isAttached) await claims.commit(claim.keepReply(reply));
    return { reply, isReplay: false };
  } finally {
    claim.release();
  }
}
