// The header with which a node forwards a request to another node, signed by an HMAC with the keys of the nodes.
// The signature covers method, target, headers, the forwarded data, the receiving process, a time, and a number
// that is unique per sender. A process accepts only requests that are addressed to it and recent, each of them
// once. Times are on the receiver's clock, which its announcements publish, so that the clocks of the machines need
// not agree.

import type { IncomingHttpHeaders } from 'node:http';
import type { Principal } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import type { NodeKeys } from '../../platform/node-keys.js';
import type { LogPositions } from '../wire/consistency.js';

/** The data that a node forwards with a request. */
export interface ForwardedRequest {
  /** The client as the first node authenticated it; credentials of the client are not forwarded. */
  readonly principal: Principal;
  /** The address of the client; `local` for the control socket. */
  readonly client: string;
  /** The node that the client sent the request to. */
  readonly via: string;
  /** The number of nodes that have forwarded the request. */
  readonly hopCount: number;
  /** How long the request has been on these nodes, in milliseconds. */
  readonly waitedMs: number;
  /**
   * How far that node has applied the catalogue, and what its clients have seen of the collection: the request may
   * depend on both.
   */
  readonly positions: LogPositions;
  /** Whether this is a change of the catalogue that needs rows which the forwarding node does not hold. */
  readonly needsRows?: boolean;
  /** Null for a request without a body. `byteCount` is null if the client did not declare it. */
  readonly body: { readonly byteCount: number | null } | null;
}

interface Envelope extends ForwardedRequest {
  /** The instance of the sender. */
  readonly from: string;
  /** The instance of the receiver. */
  readonly to: string;
  /** Consecutive per sender. */
  readonly number: number;
  /** The time of sending on the clock of the receiver. */
  readonly atMs: number;
}

/** The parts of a request that the signature covers besides the envelope. */
export interface SignedRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly id: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export const FORWARDED = 'sagitta-forwarded';
/**
 * The headers of a client that nodes pass on and sign: those that the API reads, except credentials. Other headers may
 * contain credentials too, such as those of proxies.
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

/** Older requests are refused. A busy process reads a request in less time. */
export const AGE_MS_MAX = 30_000;
/** How far requests of one sender may arrive out of order. Takes 4 KiB per sender. */
const REORDER_MAX = 32_768;
/** Processes that sent a validly signed request recently. */
const SENDERS_MAX = 1_024;

export interface Signature {
  /** The value of the header. */
  readonly header: string;
  /** The HMAC of the request, which the signatures of body chunks start from. */
  readonly tag: Buffer;
}

export class RequestSigner {
  readonly #keys: NodeKeys;
  readonly #from: string;
  #lastNumber = 0;

  /** `from` is the instance of this process. */
  constructor(keys: NodeKeys, from: string) {
    this.#keys = keys;
    this.#from = from;
  }

  /** `receiver` is the addressed process and the current time of its clock. */
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

  /** `self` is the instance of this process, and `nowMs` the clock that it announces. */
  constructor(keys: NodeKeys, self: string, nowMs: () => number) {
    this.#keys = keys;
    this.#self = self;
    this.#nowMs = nowMs;
  }

  /**
   * Throws `credentials_invalid` for a request that no node has signed or that is a replay. Throws `no_leader`, after
   * which the sender may retry, for a request that is too old or addressed to another process.
   */
  verify(
    header: string,
    request: SignedRequest,
  ): { readonly forwarded: ForwardedRequest; readonly tag: Buffer } {
    const [text = '', digest = ''] = header.split('.');
    const tag = Buffer.from(digest, 'base64url');
    if (!this.#keys.verify('requests', tag, signedText(request, text))) {
      throw refused(
        `The header ${FORWARDED} is not signed for this request with the SAGITTA_CLUSTER_SECRET of this node. Clients must not send it.`,
      );
    }
    const envelope = JSON.parse(Buffer.from(text, 'base64url').toString()) as Envelope;
    const { from, to, number, atMs, ...forwarded } = envelope;
    if (to !== this.#self) {
      throw late(`The request is addressed to the process ${to}; this one is ${this.#self}.`);
    }
    const nowMs = this.#nowMs();
    const ageMs = Math.round(nowMs - atMs);
    if (Math.abs(ageMs) > AGE_MS_MAX) {
      throw late(
        `The request of another node is ${ageMs} ms old by the clock of this process; expected at most ${AGE_MS_MAX} ms.`,
      );
    }
    if (!this.#senderOf(from, nowMs).accept(number, nowMs)) {
      throw refused(`Request ${number} of the process ${from} was received before.`);
    }
    return { forwarded, tag };
  }

  /** Senders are forgotten only when all their earlier requests are too old to be accepted. */
  #senderOf(instance: string, nowMs: number): Sender {
    const known = this.#senders.get(instance);
    if (known !== undefined) return known;
    for (const [other, { lastMs }] of this.#senders) {
      if (nowMs - lastMs > 2 * AGE_MS_MAX) this.#senders.delete(other);
    }
    if (this.#senders.size >= SENDERS_MAX)
      throw late(`Expected requests of at most ${SENDERS_MAX} processes of nodes; found more.`);
    const sender = new Sender();
    this.#senders.set(instance, sender);
    return sender;
  }
}

/** The requests of one process that were accepted, for the newest numbers. */
class Sender {
  lastMs = 0;
  #highest = 0;
  /** A bit for each number modulo `REORDER_MAX`. */
  readonly #isAccepted = new Uint8Array(REORDER_MAX / 8);

  accept(number: number, nowMs: number): boolean {
    if (!Number.isSafeInteger(number) || number <= this.#highest - REORDER_MAX) return false;
    const first = Math.max(this.#highest + 1, number - REORDER_MAX + 1);
    for (let skipped = first; skipped <= number; skipped++) this.#set(skipped, false);
    if (number <= this.#highest && this.#get(number)) return false;
    this.#set(number, true);
    this.#highest = Math.max(this.#highest, number);
    this.lastMs = nowMs;
    return true;
  }

  #get(number: number): boolean {
    const at = number % REORDER_MAX;
    return (this.#isAccepted[at >> 3]! & (1 << (at & 7))) !== 0;
  }

  #set(number: number, isAccepted: boolean): void {
    const at = number % REORDER_MAX;
    const bit = 1 << (at & 7);
    if (isAccepted) this.#isAccepted[at >> 3]! |= bit;
    else this.#isAccepted[at >> 3]! &= ~bit;
  }
}

/** The headers of a client's request that are forwarded. */
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
