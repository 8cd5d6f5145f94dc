// Describes errors for people who use the console.

import { SagittaClientError } from '@sagitta/client';

export interface ErrorDescription {
  readonly title: string;
  readonly detail: string;
  /** The invalid parts of the request, each with its JSON pointer. */
  readonly items: readonly string[];
  /** Identifies the request in the server's log. */
  readonly requestId: string | undefined;
}

/** The number of parts to list; more do not help. */
const ITEMS_MAX = 8;

export function describeError(error: unknown): ErrorDescription {
  if (!(error instanceof SagittaClientError)) {
    const detail = error instanceof Error ? error.message : String(error);
    return { title: 'The console failed', detail, items: [], requestId: undefined };
  }
  return {
    title: titleOf(error),
    detail: error.detail,
    items: error.items
      .slice(0, ITEMS_MAX)
      .map(({ pointer, detail }) => (pointer ? `${pointer}: ${detail}` : detail))
      .filter((item) => item !== error.detail),
    requestId: error.requestId,
  };
}

function titleOf({ code, status, retryAfterMs }: SagittaClientError): string {
  if (code === 'network_error') return 'The server cannot be reached';
  if (code === 'timeout') return 'The server did not answer in time';
  if (status === 401) return 'Sign in to see this';
  if (status === 403) return 'Your credential does not allow this';
  const wait = retryAfterMs === undefined ? '' : `; try again in ${seconds(retryAfterMs)}`;
  if (status === 429) return `Too many requests${wait}`;
  if (status === 503) return `The server is unavailable at the moment${wait}`;
  if (status !== undefined && status >= 500) return 'The server failed';
  return status === 404 ? 'Not found' : 'The request was not accepted';
}

function seconds(ms: number): string {
  return `${Math.max(1, Math.ceil(ms / 1000))} s`;
}
