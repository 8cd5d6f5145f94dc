// Warnings in replies: the request was carried out, but probably not as intended. They are passed to a callback, because
// many methods return values that cannot hold them.

import type { Warning } from './types.js';

/** The request whose reply contained the warning. */
export interface WarnedRequest {
  readonly method: string;
  /** Below `/v1`. */
  readonly path: string;
}

/** If it throws, the call is rejected, even if its write has been carried out. */
export type OnWarning = (warning: Warning, request: WarnedRequest) => void;

/** The header that carries the warnings of streamed replies. */
const HEADER = 'sagitta-warnings';

/** The number of texts to remember, so that each is logged once. */
const LOGGED_MAX = 1_000;

interface Warned {
  readonly warnings?: readonly Warning[];
}

/** The distinct warnings of a reply and, for a batch, of its results. */
export function warningsOf(body: unknown, headers: Headers): readonly Warning[] {
  const text = headers.get(HEADER);
  if (text !== null) return JSON.parse(text) as readonly Warning[];
  const { warnings = [], results = [] } = (body ?? {}) as Warned & { results?: readonly Warned[] };
  if (warnings.length === 0 && results.length === 0) return [];
  const all = [...warnings, ...results.flatMap((result) => result.warnings ?? [])];
  return [...new Map(all.map((warning) => [`${warning.in} ${warning.detail}`, warning])).values()];
}

/** Logs each distinct warning once to the console. */
export function logOnce(): OnWarning {
  const logged = new Set<string>();
  return ({ in: member, detail }, { method, path }) => {
    const text = `Sagitta: ${detail} (${member} of ${method} ${path})`;
    if (logged.has(text)) return;
    if (logged.size >= LOGGED_MAX) logged.clear();
    logged.add(text);
    console.warn(text);
  };
}
