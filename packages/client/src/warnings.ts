// Warnings of replies: a request was carried out, but probably not as it was meant. They are passed on here, once for all
// methods, because many return what has no place for them.

import type { Warning } from './types.js';

/** The request whose reply has the warning. */
export interface WarnedRequest {
  readonly method: string;
  /** Below `/v1`. */
  readonly path: string;
}

/** What it throws rejects the call, also one whose write has been carried out. */
export type OnWarning = (warning: Warning, request: WarnedRequest) => void;

/** Of streamed replies. */
const HEADER = 'sagitta-warnings';

/** Texts that are remembered, so that each is logged once. */
const LOGGED_MAX = 1_000;

interface Warned {
  readonly warnings?: readonly Warning[];
}

/** Those of a reply, and of the parts of one to a batch; each once. */
export function warningsOf(body: unknown, headers: Headers): readonly Warning[] {
  const text = headers.get(HEADER);
  if (text !== null) return JSON.parse(text) as readonly Warning[];
  const { warnings = [], results = [] } = (body ?? {}) as Warned & { results?: readonly Warned[] };
  if (warnings.length === 0 && results.length === 0) return [];
  const all = [...warnings, ...results.flatMap((result) => result.warnings ?? [])];
  return [...new Map(all.map((warning) => [`${warning.in} ${warning.detail}`, warning])).values()];
}

/** Writes each text once to the console. */
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
