// The public keys that access tokens are verified by: a JSON Web Key Set from a URL, fetched when
// it is needed and no more often than it helps, or from a file, read again when it changes.

import { readFile } from 'node:fs/promises';
import {
  type CryptoKey,
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWSHeaderParameters,
} from 'jose';
import { z } from 'zod';
import { isLoopback } from '../../config.js';
import { SagittaError } from '../../errors.js';
import type { Logger } from '../../logger.js';
import { reasonOf } from '../listener/tls.js';
import { watchFiles } from '../listener/watched-files.js';

export interface KeySet {
  /** Throws what jose throws where no key or several fit, and `credentials_unavailable`. */
  readonly getKey: (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey>;
  close(): void;
}

export interface KeySetTimes {
  /** A key that its issuer removes is trusted for so long at most. */
  readonly cacheMsMax: number;
  /** Unknown keys make us look again no more often than this: anybody can name unknown keys. */
  readonly refetchMsMin: number;
  /** After a failure nobody asks again for so long. */
  readonly retryMsMin: number;
  readonly fetchMsMax: number;
}

export const KEY_SET_TIMES: KeySetTimes = {
  cacheMsMax: 30_000,
  refetchMsMin: 10_000,
  retryMsMin: 2_000,
  fetchMsMax: 5_000,
};

export interface KeySetOptions {
  /** A URL, or the path of a file. */
  readonly source: string;
  readonly logger: Logger;
  readonly times?: Partial<KeySetTimes>;
}

/** Throws `configuration_invalid`, which names the source and says what is wrong with it. */
export async function openKeySet({ source, logger, times }: KeySetOptions): Promise<KeySet> {
  return /^[a-z][\w+.-]*:\/\//i.test(source)
    ? remoteKeySet(readUrl(source), { ...KEY_SET_TIMES, ...times }, logger)
    : await fileKeySet(source, logger);
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPrivate =
    url?.protocol === 'https:' ||
    (url?.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, '')));
  if (url === null || !isPrivate) {
    throw invalid(
      `The key set ${text} is not at an https URL; expected one, since whoever changes the keys on their way can issue tokens. Only a loopback address may do without.`,
    );
  }
  return url;
}

function remoteKeySet(url: URL, times: KeySetTimes, logger: Logger): KeySet {
  let failure: { error: unknown; atMs: number } | undefined;
  const remote = createRemoteJWKSet(url, {
    cacheMaxAge: times.cacheMsMax,
    cooldownDuration: times.refetchMsMin,
    timeoutDuration: times.fetchMsMax,
    [customFetch]: (address, options) => {
      // Every request would ask an issuer that is down, and wait for it.
      if (failure !== undefined && performance.now() < failure.atMs + times.retryMsMin) {
        return Promise.reject(failure.error);
      }
      return fetch(address, options);
    },
  });
  return {
    async getKey(header, token) {
      try {
        return await remote(header, token);
      } catch (error) {
        if (isAboutToken(error)) throw error;
        if (error !== failure?.error) {
          failure = { error, atMs: performance.now() };
          logger.warn({ url: url.href, reason: describe(error) }, 'the key set cannot be fetched');
        }
        throw new SagittaError(
          'credentials_unavailable',
          'The keys of the issuer of access tokens cannot be fetched now.',
          { retryAfterSeconds: Math.ceil(times.retryMsMin / 1000), cause: error },
        );
      }
    },
    close() {},
  };
}

async function fileKeySet(path: string, logger: Logger): Promise<KeySet> {
  let text = await readText(path);
  let find = parseKeySet(text, path);
  let reading: Promise<void> = Promise.resolve();
  const reload = async () => {
    const found = await readText(path);
    if (found === text) return;
    find = parseKeySet(found, path);
    text = found;
    logger.info({ path }, 'key set reloaded');
  };
  const watched = watchFiles(
    [path],
    () => {
      reading = reading.then(reload).catch((error: unknown) => {
        logger.error({ detail: describe(error) }, 'key set not reloaded: the one before stays');
      });
    },
    logger,
  );
  return {
    getKey: (header, token) => find(header, token),
    close: () => watched.close(),
  };
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw invalid(`The key set ${path} cannot be read: ${reasonOf(error)}.`, error);
  }
}

const PUBLIC_KEY_SETS = z.looseObject({
  keys: z
    .array(z.looseObject({ kty: z.string(), d: z.never().optional(), k: z.never().optional() }))
    .min(1),
});

function parseKeySet(text: string, path: string): ReturnType<typeof createLocalJWKSet> {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw invalid(`The key set ${path} is not JSON: ${(error as Error).message}.`, error);
  }
  const result = PUBLIC_KEY_SETS.safeParse(found);
  if (result.success) return createLocalJWKSet(found as JSONWebKeySet);
  const place = result.error.issues[0]!.path;
  const isSecret = ['d', 'k'].includes(String(place.at(-1)));
  throw invalid(
    isSecret
      ? `The key set ${path} holds a secret at /${place.join('/')}; expected public keys only, since they are all that verifying takes.`
      : `The key set ${path} is not one at /${place.join('/')}; expected {"keys": [...]} with at least one public key.`,
  );
}

/** Whether it is the token that no key, or more than one, fits. */
function isAboutToken(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys
  );
}

/** What `fetch` says is in the cause. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

const invalid = (detail: string, cause?: unknown) =>
  new SagittaError('configuration_invalid', detail, { cause });
