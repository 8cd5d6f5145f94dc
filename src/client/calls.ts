// The kinds of request that the methods are made of, each with what is known about repeating it.

import { type CallOptions, callOf, type WriteOptions } from './options.js';
import type { Transport, TransportReply } from './transport.js';

export interface Calls {
  readonly transport: Transport;
  /** A GET. */
  get<Body>(path: string, query: object, call?: CallOptions): Promise<Body>;
  /** A POST that changes nothing. */
  ask<Body>(path: string, body: object, call?: CallOptions): Promise<Body>;
  /** A POST with an idempotency key, so that a lost reply is asked for again. */
  write<Body>(
    path: string,
    body: object | string,
    call?: WriteOptions,
    query?: object,
  ): Promise<TransportReply<Body>>;
  /** A POST whose reply nobody can give again, and that is therefore sent once. */
  once<Body>(path: string, body: object, call?: CallOptions): Promise<Body>;
  /** PUT, PATCH and DELETE, of which only some are harmless to repeat. */
  change<Body>(
    method: 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    rest: {
      readonly body?: object;
      readonly headers?: Readonly<Record<string, string>>;
      readonly mayRepeat: boolean;
    },
    call?: CallOptions,
  ): Promise<Body>;
}

export function createCalls(transport: Transport): Calls {
  const post = async <Body>(
    path: string,
    body: object,
    mayRepeat: boolean,
    call?: CallOptions,
  ): Promise<Body> => {
    const request = { method: 'POST', path, body, mayRepeat, ...callOf(call) } as const;
    return (await transport.send<Body>(request)).body;
  };
  return {
    transport,
    async get<Body>(path: string, query: object, call?: CallOptions) {
      const request = { method: 'GET', path, mayRepeat: true, ...callOf(call) } as const;
      return (await transport.send<Body>({ ...request, query: { ...query } })).body;
    },
    ask: (path, body, call) => post(path, body, true, call),
    once: (path, body, call) => post(path, body, false, call),
    write(path, body, call = {}, query = {}) {
      const headers = { 'idempotency-key': call.idempotencyKey ?? crypto.randomUUID() };
      const request = { method: 'POST', path, body, headers, mayRepeat: true } as const;
      return transport.send({ ...request, query: { ...query }, ...callOf(call) });
    },
    async change<Body>(
      method: 'PUT' | 'PATCH' | 'DELETE',
      path: string,
      rest: { readonly body?: object; readonly mayRepeat: boolean },
      call?: CallOptions,
    ) {
      return (await transport.send<Body>({ method, path, ...rest, ...callOf(call) })).body;
    },
  };
}
