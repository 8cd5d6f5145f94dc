// The public keys that access tokens are verified by: a JSON Web Key Set from a URL, fetched when
// it is needed and no more often than it helps, or from a file, read again when it changes. An issuer
// that is down for a while stops no token whose key is known. Of a URL nobody is told the query.

import { readFile } from 'node:fs/promises';
import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWSHeaderParameters,
} from 'jose';
import { z } from 'zod';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { isLoopback } from '../../platform/config.js';
import { describeFileError } from '../transport/tls.js';
import { watchFiles } from '../transport/watched-files.js';

export interface KeySet {
  /** Throws what jose throws where no key or several fit, and `credentials_unavailable`. */
  readonly getKey: (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey>;
  close(): void;
}

export interface KeySetTimes {
  /** A key that its issuer removes is trusted for so long at most, while its issuer answers. */
  readonly cacheMsMax: number;
  /** And for so long when it does not: an outage ends no service, nor does it keep a withdrawn key. */
  readonly staleMsMax: number;
  /** Unknown keys make us look again no more often than this: anybody can name unknown keys. */
  readonly refetchMsMin: number;
  /** After a failure nobody asks again for so long. */
  readonly retryMsMin: number;
  readonly fetchMsMax: number;
}

export const KEY_SET_TIMES: KeySetTimes = {
  cacheMsMax: 30_000,
  staleMsMax: 10 * 60_000,
  refetchMsMin: 10_000,
  retryMsMin: 2_000,
  fetchMsMax: 5_000,
};

/** An outage shall not fill the log as well. */
const WARNING_INTERVAL_MS = 60_000;

export interface KeySetOptions {
  /** A URL, or the path of a file. */
  readonly source: string;
  readonly logger: Logger;
  readonly times?: Partial<KeySetTimes>;
}

/** Throws `configuration_invalid`, which names the source and says what is wrong with it. */
export async function openKeySet({ source, logger, times }: KeySetOptions): Promise<KeySet> {
  return /^https?:|^[a-z][\w+.-]*:\/\//i.test(source)
    ? new RemoteKeySet(readUrl(source), { ...KEY_SET_TIMES, ...times }, logger)
    : await fileKeySet(source, logger);
}

/** What it throws repeats neither what may be a password nor a query, which may hold a token. */
function readUrl(text: string): URL {
  if (!URL.canParse(text)) throw invalid('The key set is at no valid URL; expected an https URL.');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') {
    throw invalid(
      `The URL of the key set at ${url.host} holds a user name or a password; expected none, since key sets are public.`,
    );
  }
  const isPrivate =
    url.protocol === 'https:' ||
    (url.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, '')));
  if (!isPrivate) {
    throw invalid(
      `The key set ${placeOf(url)} is not at an https URL; expected one, since whoever changes the keys on their way can issue tokens. Only a loopback address may do without.`,
    );
  }
  return url;
}

const placeOf = ({ protocol, host, pathname }: URL) => `${protocol}//${host}${pathname}`;

type FindKey = ReturnType<typeof createLocalJWKSet>;

interface Held {
  readonly find: FindKey;
  readonly fetchedAtMs: number;
}

class RemoteKeySet implements KeySet {
  readonly #url: URL;
  readonly #times: KeySetTimes;
  readonly #logger: Logger;
  /** The last that was had. */
  #held: Held | null = null;
  /** Of the last attempt, unless it went well. */
  #failure: { readonly error: unknown; readonly atMs: number } | null = null;
  #fetching: Promise<void> | null = null;
  #warnAtMs = Number.NEGATIVE_INFINITY;

  constructor(url: URL, times: KeySetTimes, logger: Logger) {
    this.#url = url;
    this.#times = times;
    this.#logger = logger;
  }

  async getKey(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    const find = await this.#current();
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    await this.#refresh();
    // Nobody can say that there is no such key.
    if (this.#failure !== null || this.#held === null) throw this.#unavailable();
    return this.#held.find(header, token);
  }

  close(): void {}

  async #current(): Promise<FindKey> {
    const { cacheMsMax, staleMsMax } = this.#times;
    if (this.#held !== null && ageOf(this.#held.fetchedAtMs) < cacheMsMax) return this.#held.find;
    const isDown = this.#failure !== null && ageOf(this.#failure.atMs) < cacheMsMax;
    const refreshed = this.#refresh();
    // While the issuer is down nobody waits for it whose key is known.
    if (!isDown || this.#held === null) await refreshed;
    if (this.#held === null || ageOf(this.#held.fetchedAtMs) >= staleMsMax) {
      throw this.#unavailable();
    }
    return this.#held.find;
  }

  /** Asks the issuer, unless somebody did just now. What comes of it is in the fields. */
  #refresh(): Promise<void> {
    if (this.#fetching !== null) return this.#fetching;
    const { cacheMsMax, refetchMsMin, retryMsMin } = this.#times;
    const isTooSoon =
      this.#failure !== null
        ? ageOf(this.#failure.atMs) < retryMsMin
        : this.#held !== null && ageOf(this.#held.fetchedAtMs) < Math.min(refetchMsMin, cacheMsMax);
    if (isTooSoon) return Promise.resolve();
    this.#fetching = this.#fetch().finally(() => {
      this.#fetching = null;
    });
    return this.#fetching;
  }

  async #fetch(): Promise<void> {
    try {
      const find = await fetchKeySet(this.#url, this.#times.fetchMsMax);
      this.#held = { find, fetchedAtMs: performance.now() };
      this.#failure = null;
    } catch (error) {
      this.#failure = { error, atMs: performance.now() };
      this.#warn(error);
    }
  }

  #warn(error: unknown): void {
    if (performance.now() < this.#warnAtMs) return;
    this.#warnAtMs = performance.now() + WARNING_INTERVAL_MS;
    const secondsOld = this.#held && Math.round(ageOf(this.#held.fetchedAtMs) / 1000);
    this.#logger.warn(
      { url: placeOf(this.#url), reason: describe(error), held_seconds: secondsOld },
      'the key set cannot be fetched',
    );
  }

  #unavailable(): SagittaError {
    return new SagittaError(
      'credentials_unavailable',
      'The keys of the issuer of access tokens cannot be fetched now.',
      {
        retryAfterSeconds: Math.ceil(this.#times.retryMsMin / 1000),
        cause: this.#failure?.error,
      },
    );
  }
}

const ageOf = (atMs: number) => performance.now() - atMs;

async function fetchKeySet(url: URL, msMax: number): Promise<FindKey> {
  const response = await fetch(url, {
    redirect: 'manual',
    headers: { accept: 'application/json, application/jwk-set+json' },
    signal: AbortSignal.timeout(msMax),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the reply is ${response.status}; expected 200`);
  }
  const text = await response.text();
  try {
    return createLocalJWKSet(JSON.parse(text));
  } catch {
    // What JSON.parse says repeats what it found.
    throw new Error('the reply is not a JSON Web Key Set');
  }
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
    throw invalid(`The key set ${path} cannot be read: ${describeFileError(error)}.`, error);
  }
}

const PUBLIC_KEY_SETS = z.looseObject({
  keys: z
    .array(z.looseObject({ kty: z.string(), d: z.never().optional(), k: z.never().optional() }))
    .min(1),
});

function parseKeySet(text: string, path: string): FindKey {
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

/** What `fetch` says is in the cause. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

const invalid = (detail: string, cause?: unknown) =>
  new SagittaError('configuration_invalid', detail, { cause });
