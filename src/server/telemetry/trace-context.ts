// Parses the headers of W3C Trace Context. Invalid headers are ignored.

import type { IncomingHttpHeaders } from 'node:http';
import type { TraceContext } from '../../common/trace.js';

/** Version, trace id, id of the calling span and flags; later versions may append fields. */
const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-[^,]*)?$/;
const SAMPLED = 1;
/** The length that the recommendation requires to be propagated. */
const STATE_CHARACTERS_MAX = 512;
const PRINTABLE = /^[\x20-\x7e\t]*$/;

export function readTraceContext(headers: IncomingHttpHeaders): TraceContext | null {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string') return null;
  const [, version, traceId, spanId, flags, rest] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === undefined || version === 'ff') return null;
  if (version === '00' && rest !== undefined) return null;
  if (/^0+$/.test(traceId!) || /^0+$/.test(spanId!)) return null;
  return {
    traceId: traceId!,
    spanId: spanId!,
    isSampled: (Number.parseInt(flags!, 16) & SAMPLED) !== 0,
    state: readState(tracestate),
  };
}

function readState(found: string | string[] | undefined): string | undefined {
  const state = Array.isArray(found) ? found.join(',') : found;
  if (state === undefined || state === '' || state.length > STATE_CHARACTERS_MAX) return undefined;
  return PRINTABLE.test(state) ? state : undefined;
}
