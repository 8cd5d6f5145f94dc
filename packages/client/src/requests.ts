// The kinds of requests that the client's methods send, each with its retry behaviour; options of calls,
// ids as path segments and iteration over pages.

import { SagittaClientError } from './error.js';
import { requireKnown } from './known-options.js';
import type { Transport, TransportReply } from './transport.js';

export interface CallOptions {
  /** Aborts the call; it rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Milliseconds per attempt; overrides the client's setting. Infinity disables the timeout. */
  readonly timeoutMs?: number;
}

export interface ProgressOptions extends CallOptions {
  /** Called when the reply begins and after each row, with the number of rows read and of all rows. */
  readonly onProgress?: (readCount: number, rowCount: number) => void;
}

export interface WriteOptions extends CallOptions {
  /** Generated when absent; pass one to make a write safe across restarts of your process. */
  readonly idempotencyKey?: string;
}

export interface Requests {
  readonly transport: Transport;
  /** A GET request. */
  get<Body>(path: string, query: object, options?: CallOptions): Promise<Body>;
  /** A POST request that may be sent twice, because it has no side effects or repeats them harmlessly. */
  read<Body>(path: string, body: object, options?: CallOptions): Promise<Body>;
  /** A POST request with an idempotency key, retried after a lost reply. */
  write<Body>(
    path: string,
    body: object | string,
    options?: WriteOptions,
    query?: object,
    /** The names of the method's own options, which it has already removed from `options`. */
    names?: readonly string[],
  ): Promise<TransportReply<Body>>;
  /** A POST request that is not retried after a lost reply. */
  postOnce<Body>(path: string, body: object, options?: CallOptions): Promise<Body>;
  /** A request that may or may not be idempotent. */
  change<Body>(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    rest: {
      readonly body?: object;
      readonly headers?: Readonly<Record<string, string>>;
      readonly isIdempotent: boolean;
    },
    options?: CallOptions,
  ): Promise<Body>;
}

export function createRequests(transport: Transport): Requests {
  const post = async <Body>(
    path: string,
    body: object,
    isIdempotent: boolean,
    options?: CallOptions,
  ): Promise<Body> => {
    const request = { method: 'POST', path, body, isIdempotent, ...callOptions(options) } as const;
    return (await transport.send<Body>(request)).body;
  };
  return {
    transport,
    async get<Body>(path: string, query: object, options?: CallOptions) {
      const request = { method: 'GET', path, isIdempotent: true, ...callOptions(options) } as const;
      return (await transport.send<Body>({ ...request, query: { ...query } })).body;
    },
    read: (path, body, options) => post(path, body, true, options),
    postOnce: (path, body, options) => post(path, body, false, options),
    async write(path, body, options = {}, query = {}, names = []) {
      const { idempotencyKey = crypto.randomUUID(), ...rest } = options;
      const call = callOptions(rest, ['idempotencyKey', ...names]);
      const headers = { 'idempotency-key': idempotencyKey };
      const request = { method: 'POST', path, body, headers, isIdempotent: true } as const;
      return transport.send({ ...request, query: { ...query }, ...call });
    },
    async change<Body>(
      method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
      path: string,
      rest: { readonly body?: object; readonly isIdempotent: boolean },
      options?: CallOptions,
    ) {
      const request = { method, path, ...rest, ...callOptions(options) };
      return (await transport.send<Body>(request)).body;
    },
  };
}

/**
 * Picks the options of every call from a method's options; `names` are the method's own. Throws SagittaClientError
 * (`invalid_argument`) for any others: a misspelt `dryRun` would otherwise delete vectors.
 */
export function callOptions(
  options: CallOptions | undefined,
  names: readonly string[] = [],
): {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
} {
  const { signal, timeoutMs, ...rest } = options ?? {};
  requireKnown(rest, [...names, 'signal', 'timeoutMs']);
  return { signal, timeoutMs };
}

/** An id as a path segment. `.` and `..` are rejected: URLs resolve them even when encoded. */
export function pathSegment(id: string): string {
  if (id === '' || id === '.' || id === '..') {
    throw new SagittaClientError(
      'invalid_argument',
      `the id "${id}" cannot be part of a URL; use a method that sends it in a body (upsert, fetch, deleteMany)`,
    );
  }
  try {
    return encodeURIComponent(id);
  } catch {
    throw new SagittaClientError('invalid_argument', 'the id contains a lone surrogate');
  }
}

/** Yields page after page; stops requesting when the consumer leaves the loop. */
export async function* pagesOf<
  Request extends object,
  Page extends { readonly next_cursor?: string },
>(
  request: Request,
  load: (request: Request | { readonly cursor: string }) => Promise<Page>,
): AsyncGenerator<Page, void, undefined> {
  let page = await load(request);
  yield page;
  // A cursor contains everything the next page needs, so it is sent alone.
  while (page.next_cursor !== undefined && page.next_cursor !== '') {
    page = await load({ cursor: page.next_cursor });
    yield page;
  }
}

/** Yields the items of all pages; `pick` selects the items of a page. */
export async function* itemsOf<Page, Item>(
  pages: AsyncIterable<Page>,
  pick: (page: Page) => readonly Item[],
): AsyncGenerator<Item, void, undefined> {
  for await (const page of pages) yield* pick(page);
}
