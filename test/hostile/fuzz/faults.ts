// The faults that were found: one example of each kind, and how often it occurred.

import { asCurl, type Connection, type WireReply, type WireRequest } from './wire.js';

export interface Fault {
  readonly operationId: string;
  readonly complaint: string;
  /** A command that repeats the request, and the reply. */
  readonly example: string;
  count: number;
}

const SHOWN_MAX = 1_500;

export class Faults {
  readonly #byKind = new Map<string, Fault>();

  get all(): readonly Fault[] {
    return [...this.#byKind.values()];
  }

  /** Returns whether it is the first of its kind. */
  add(operationId: string, complaint: string, example: () => string): boolean {
    // Examples of the same fault differ in ids and numbers.
    const kind = `${operationId}: ${complaint.replace(/\d+/g, '0').slice(0, 120)}`;
    const known = this.#byKind.get(kind);
    if (known !== undefined) {
      known.count++;
      return false;
    }
    this.#byKind.set(kind, { operationId, complaint, example: example(), count: 1 });
    return true;
  }
}

export function describeExchange(
  url: string,
  request: WireRequest,
  reply: WireReply | null,
): string {
  const command = asCurl(url, request);
  if (reply === null) return command;
  const text = reply.body.toString();
  const shown = text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}…`;
  return `${command}\n  → ${reply.status} ${JSON.stringify(reply.headers)} ${shown}`;
}

const ATTEMPTS_MAX = 60;

/**
 * Reduces the JSON body and the headers of a request as long as the same complaint applies; null if the unchanged
 * request does not reproduce the complaint.
 */
export async function shrink(
  connection: Connection,
  request: WireRequest,
  isSame: (request: WireRequest, reply: WireReply) => boolean,
): Promise<WireRequest | null> {
  let attemptsLeft = ATTEMPTS_MAX;
  const fails = async (candidate: WireRequest) => {
    if (attemptsLeft-- <= 0) return false;
    const reply = await connection.send(candidate).catch(() => null);
    return reply !== null && isSame(candidate, reply);
  };
  if (!(await fails(request))) return null;
  let best = request;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smallerOnes(best)) {
      if (!(await fails(candidate))) continue;
      best = candidate;
      isSmaller = true;
      break;
    }
  }
  return best;
}

function* smallerOnes(request: WireRequest): Generator<WireRequest> {
  for (const [name] of request.headers) {
    if (['authorization', 'content-type'].includes(name)) continue;
    yield { ...request, headers: request.headers.filter(([known]) => known !== name) };
  }
  let value: unknown;
  try {
    value = JSON.parse(request.body?.toString() ?? '');
  } catch {
    return;
  }
  for (const smaller of withoutOnePart(value)) {
    yield { ...request, body: Buffer.from(JSON.stringify(smaller)) };
  }
}

/** The value without one of its members or elements, outermost first. */
function* withoutOnePart(value: unknown): Generator<unknown> {
  if (typeof value !== 'object' || value === null) return;
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const build = (kept: typeof entries) =>
    isList ? kept.map(([, part]) => part) : Object.fromEntries(kept);
  for (const [name] of entries) yield build(entries.filter(([known]) => known !== name));
  for (const [name, part] of entries) {
    for (const smaller of withoutOnePart(part)) {
      yield build(entries.map(([known, old]) => [known, known === name ? smaller : old]));
    }
  }
}
