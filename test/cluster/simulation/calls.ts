// Requests between clients and nodes, and between nodes. A request to a process that is gone or cannot be reached
// fails before anything was sent; one that was delivered and is not answered has an unknown outcome.

import { SagittaError } from '../../../src/common/errors.js';
import type { Network } from './network.js';
import type { Scheduler, SimProcess } from './scheduler.js';

const CONNECT_MS_MAX = 2_000;
const REPLY_MS_MAX = 15_000;

interface PendingCall {
  readonly from: SimProcess;
  readonly reset: () => void;
}

/** What answers the requests to a process. */
export interface Endpoint {
  readonly process: SimProcess;
  readonly handle: (request: unknown) => Promise<unknown>;
}

/** Thrown for a request that was delivered, but not answered. */
export class NoReplyError extends Error {}

export class Calls {
  readonly #scheduler: Scheduler;
  readonly #network: Network;
  /** By URL. */
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #pending = new Map<SimProcess, Set<PendingCall>>();

  constructor(scheduler: Scheduler, network: Network) {
    this.#scheduler = scheduler;
    this.#network = network;
  }

  serve(url: string, endpoint: Endpoint): void {
    this.#endpoints.set(url, endpoint);
  }

  /** Called when a process has died: its connections are reset. */
  close(process: SimProcess): void {
    for (const [url, endpoint] of this.#endpoints) {
      if (endpoint.process === process) this.#endpoints.delete(url);
    }
    for (const { from, reset } of this.#pending.get(process) ?? []) {
      this.#network.send(process.machine, from, 'reset', reset);
    }
    this.#pending.delete(process);
  }

  /** Rejects with `no_leader` if nothing was delivered, with NoReplyError, and with what the endpoint throws. */
  call<Reply>(from: SimProcess, url: string, request: unknown): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      const endpoint = this.#endpoints.get(url);
      if (endpoint === undefined) {
        this.#scheduler.after(1, from, 'refused', () => reject(unreachable(url)));
        return;
      }
      let isOver = false;
      const end = (settle: () => void) => {
        if (isOver) return;
        isOver = true;
        connecting.isCancelled = true;
        pendingOf.delete(pending);
        settle();
      };
      const connecting = this.#scheduler.after(CONNECT_MS_MAX, from, 'connect timeout', () =>
        end(() => reject(unreachable(url))),
      );
      const reset = () => end(() => reject(new NoReplyError(`${url} did not answer`)));
      const pending = { from, reset };
      const pendingOf = this.#pending.get(endpoint.process) ?? new Set();
      this.#pending.set(endpoint.process, pendingOf);
      this.#network.send(from.machine, endpoint.process, 'request', () => {
        if (isOver) return;
        connecting.isCancelled = true;
        pendingOf.add(pending);
        this.#scheduler.after(REPLY_MS_MAX, from, 'reply timeout', reset);
        const reply = (settle: () => void) =>
          this.#network.send(endpoint.process.machine, from, 'reply', () => end(settle));
        endpoint.handle(request).then(
          (value) => reply(() => resolve(value as Reply)),
          (error: unknown) => reply(() => reject(error)),
        );
      });
    });
  }
}

function unreachable(url: string): SagittaError {
  return new SagittaError('no_leader', `${url} cannot be reached`, { retryAfterSeconds: 1 });
}
