// What a node sends along with a request to another one, and how that one knows that it comes from a node: an HMAC of
// the keys of the nodes over method, target, headers, what is sent along, when and to which process, and a number that no other
// request of the sender has. A process accepts what was made for it, lately and once. The time is that of the receiver's own
// clock, as its announcements tell it, so that no clock of a machine need be right.

import type { IncomingHttpHeaders } from 'node:http';
import type { Principal } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import type { NodeKeys } from '../../platform/node-keys.js';
import type { LogPositions } from '../wire/consistency.js';

/** What a node sends along with a request. */
export interface ForwardedRequest {
  /** Whom the node that was asked first has found to be the client; no credential of the client is sent. */
  readonly principal: Principal;
  /** The address of the client; `local` on the control socket. */
  readonly client: string;
  /** The node that was asked first. */
  readonly via: string;
  /** How many nodes have forwarded it. */
  readonly hopCount: number;
  /** What it had of the catalogue, and its clients have seen of the collection: the request may be about that. */
  readonly positions: LogPositions;
  /** Whether it is a change of the catalogue for which the node that was asked first lacks rows. */
  readonly needsRows?: boolean;
  /** Null for a request without a body. `byteCount`: null where the client does not say. */
  readonly body: { readonly byteCount: number | null } | null;
}

interface Envelope extends ForwardedRequest {
  /** The processes. */
  readonly from: string;
  readonly to: string;
  /** Counts the requests of the sender. */
  readonly number: number;
  /** On the clock of the receiver. */
  readonly atMs: number;
}

/** What is signed besides the envelope. */
export interface SignedRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly id: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export const FORWARDED = 'sagitta-forwarded';
/**
 * The headers of a client that nodes pass on, and sign: those that the API reads, without credentials. Others may have
 * some, such as those of proxies.
 */
const PASSED_HEADERS = [
  'accept',
  'accept-encoding',
  'content-encoding',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-none-match',
  'origin',
  'sagitta-consistency',
  'sagitta-session',
  'traceparent',
  'tracestate',
] as const;

/** A request that was under way for longer is refused: more than a busy process takes to read it. */
export const AGE_MS_MAX = 30_000;
/** Requests may overtake each other by so many; older ones are refused. 4 KiB of memory for each sender. */
const OVERTAKEN_MAX = 32_768;
/** Processes of nodes that sent something lately, of which only those with the secret count. */
const SENDERS_MAX = 1_024;

/** What is sent in the header, and the tag with which the chunks of the body begin. */
export interface Signature {
  readonly header: string;
  readonly tag: Buffer;
}

export class RequestSigner {
  readonly #keys: NodeKeys;
  readonly #from: string;
  #lastNumber = 0;

  /** `from`: this process. */
  constructor(keys: NodeKeys, from: string) {
    this.#keys = keys;
    this.#from = from;
  }

  /** `receiver`: the other process, and what its clock shows. */
  sign(
    request: SignedRequest,
    forwarded: ForwardedRequest,
    receiver: { readonly instance: string; readonly clockMs: number },
  ): Signature {
    const { instance: to, clockMs: atMs } = receiver;
    this.#lastNumber++;
    const envelope = { ...forwarded, from: this.#from, to, number: this.#lastNumber, atMs };
    const text = Buffer.from(JSON.stringify(envelope satisfies Envelope)).toString('base64url');
    const tag = this.#keys.sign('requests', signedText(request, text));
    return { header: `${text}.${tag.toString('base64url')}`, tag };
  }
}

export class RequestVerifier {
  readonly #keys: NodeKeys;
  readonly #self: string;
  readonly #nowMs: () => number;
  readonly #senders = new Map<string, Sender>();

  /** `self`: this process. `nowMs`: the clock that it announces. */
  constructor(keys: NodeKeys, self: string, nowMs: () => number) {
    this.#keys = keys;
    this.#self = self;
    this.#nowMs = nowMs;
  }

  /**
   * `header`: of the signature. Throws `credentials_invalid` for a request that no node has made, or that came before,
   * and `no_leader`, which the sender may repeat, for one that is late or for another process.
   */
  verify(
    header: string,
    request: SignedRequest,
  ): { readonly forwarded: ForwardedRequest; readonly tag: Buffer } {
    const [text = '', digest = ''] = header.split('.');
    const tag = Buffer.from(digest, 'base64url');
    if (!this.#keys.verify('requests', tag, signedText(request, text))) {
      throw refused(
        `The header ${FORWARDED} was not made for this request by a node that has the SAGITTA_CLUSTER_SECRET of this one. Clients do not send it.`,
      );
    }
    const envelope = JSON.parse(Buffer.from(text, 'base64url').toString()) as Envelope;
    const { from, to, number, atMs, ...forwarded } = envelope;
    if (to !== this.#self) {
      throw late(`The request was made for the process ${to}, and this one is ${this.#self}.`);
    }
    const nowMs = this.#nowMs();
    const ageMs = Math.round(nowMs - atMs);
    if (Math.abs(ageMs) > AGE_MS_MAX) {
      throw late(
        `The request of another node is ${ageMs} ms old by the clock of this process; expected at most ${AGE_MS_MAX} ms.`,
      );
    }
    if (!this.#senderOf(from, nowMs).accept(number, nowMs)) {
      throw refused(`Request ${number} of the process ${from} came before: it was sent again.`);
    }
    return { forwarded, tag };
  }

  /** Requests of a forgotten one are too old. */
  #senderOf(instance: string, nowMs: number): Sender {
    const known = this.#senders.get(instance);
    if (known !== undefined) return known;
    for (const [other, { lastMs }] of this.#senders) {
      if (nowMs - lastMs > 2 * AGE_MS_MAX) this.#senders.delete(other);
    }
    if (this.#senders.size >= SENDERS_MAX)
      throw late(`${SENDERS_MAX} processes of nodes send requests.`);
    const sender = new Sender();
    this.#senders.set(instance, sender);
    return sender;
  }
}

/** Which of the newest requests of a process were accepted. */
class Sender {
  lastMs = 0;
  #highest = 0;
  /** By number modulo their count. */
  readonly #isAccepted = new Uint8Array(OVERTAKEN_MAX / 8);

  accept(number: number, nowMs: number): boolean {
    if (!Number.isSafeInteger(number) || number <= this.#highest - OVERTAKEN_MAX) return false;
    const first = Math.max(this.#highest + 1, number - OVERTAKEN_MAX + 1);
    for (let skipped = first; skipped <= number; skipped++) this.#set(skipped, false);
    if (number <= this.#highest && this.#get(number)) return false;
    this.#set(number, true);
    this.#highest = Math.max(this.#highest, number);
    this.lastMs = nowMs;
    return true;
  }

  #get(number: number): boolean {
    const at = number % OVERTAKEN_MAX;
    return (this.#isAccepted[at >> 3]! & (1 << (at & 7))) !== 0;
  }

  #set(number: number, isAccepted: boolean): void {
    const at = number % OVERTAKEN_MAX;
    const bit = 1 << (at & 7);
    if (isAccepted) this.#isAccepted[at >> 3]! |= bit;
    else this.#isAccepted[at >> 3]! &= ~bit;
  }
}

/** The headers of a client's request that another node gets. */
export function passedHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  return Object.fromEntries(
    PASSED_HEADERS.flatMap((name) => {
      const value = headers[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function signedText({ method, target, id, headers }: SignedRequest, text: string): string {
  const passed = PASSED_HEADERS.map((name) => headers[name] ?? null);
  return `request\n${JSON.stringify([method, target, id, passed, text])}`;
}

function refused(detail: string): SagittaError {
  return new SagittaError('credentials_invalid', detail);
}

function late(detail: string): SagittaError {
  return new SagittaError('no_leader', `${detail} Nothing was done. Retry after 1 s.`, {
    retryAfterSeconds: 1,
  });
}
