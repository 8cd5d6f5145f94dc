// The user's credential and the client that sends it. The credential is kept in memory or, if the user
// chooses so, in sessionStorage, which ends with the tab; never in a URL or in localStorage.

import { type Client, createClient, SagittaClientError } from '@sagitta/client';
import { connectionLost, connectionWorks } from './connection.js';
import { createStore } from './store.js';

const STORAGE_KEY = 'sagitta.credential';

export interface ConsoleSession {
  /** An API key or a token; undefined when none was given. */
  readonly credential: string | undefined;
  readonly client: Client;
}

/** Why the user has to sign in; undefined when the server accepts the requests. */
export type SignInReason = 'missing' | 'refused';

/** The root of the server; the page is at `console/` below it, even behind a proxy. */
export const SERVER_URL = new URL('..', document.baseURI).href.replace(/\/$/, '');

export const session = createStore<ConsoleSession>(openSession(readStored()));
export const signInReason = createStore<SignInReason | undefined>(undefined);

function openSession(credential: string | undefined): ConsoleSession {
  const client = createClient({
    baseUrl: SERVER_URL,
    // Edits write metadata back, including the members that were not edited.
    exactIntegers: true,
    fetch: observedFetch(credential),
    // Failures are shown immediately; the page fetches again when the server is back.
    retry: { attemptsMax: 1 },
    circuitBreaker: false,
    ...(credential !== undefined && { apiKey: credential }),
  });
  return { credential, client };
}

/** Resolves when the server accepts the credential. Otherwise throws SagittaClientError and changes nothing. */
export async function signIn(credential: string, options: { remember: boolean }): Promise<void> {
  // Headers cannot carry other characters, and fetch's error would be less clear.
  if (!/^[\x21-\x7e]+$/.test(credential)) {
    const detail = 'expected an API key or a token: ASCII characters without spaces';
    throw new SagittaClientError('invalid_argument', detail);
  }
  await createClient({
    baseUrl: SERVER_URL,
    apiKey: credential,
    retry: { attemptsMax: 1 },
  }).collections.list({ limit: 1 });
  if (options.remember) sessionStorage.setItem(STORAGE_KEY, credential);
  else sessionStorage.removeItem(STORAGE_KEY);
  session.set(openSession(credential));
  signInReason.set(undefined);
}

export function signOut(): void {
  sessionStorage.removeItem(STORAGE_KEY);
  session.set(openSession(undefined));
}

/** Updates the state of the session and the connection from the replies to all requests. */
function observedFetch(credential: string | undefined): typeof globalThis.fetch {
  return async (input, init) => {
    try {
      // A reply from the browser's cache would look like a server that answers.
      const response = await fetch(input, { ...init, cache: 'no-cache' });
      connectionWorks();
      // A reply to a request from before the last sign-in says nothing about the new credential.
      if (response.status === 401 && session.get().credential === credential) {
        signInReason.set(credential === undefined ? 'missing' : 'refused');
      }
      return response;
    } catch (error) {
      if (init?.signal?.aborted !== true) connectionLost();
      throw error;
    }
  };
}

function readStored(): string | undefined {
  return sessionStorage.getItem(STORAGE_KEY) ?? undefined;
}
