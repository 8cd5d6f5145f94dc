// The public keys that verify access tokens: a JSON Web Key Set from a URL, fetched on demand with
// limits on the rate, or from a file, reloaded when it changes. During an outage of the issuer, tokens
// with known keys keep working for a while. The query of the URL is never logged.

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
import { LogLimiter } from '../../common/log-limiter.js';
import type { Logger } from '../../common/logger.js';
import { isLoopback } from '../../platform/config.js';
import { openWatchedJson } from './watched-json.js';

export interface KeySet {
  /** Throws `credentials_unavailable`, and the errors of jose for no or several matching keys. */
  readonly getKey: (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey>;
  close(): void;
}

export interface KeySetTimes {
  /** How long a key set is used before it is fetched again, and thus how long a revoked key works. */
  readonly cacheMsMax: number;
  /** How long a key set is used while it cannot be fetched. */
  readonly staleMsMax: number;
  /** The minimum interval of fetches for unknown keys, which anyone can put into a token. */
  readonly refetchMsMin: number;
  /** The minimum interval of attempts after a failure. */
  readonly retryMsMin: number;
  readonly fetchMsMax: number;
}

const KEY_SET_TIMES: KeySetTimes = {
  cacheMsMax: 30_000,
  staleMsMax: 10 * 60_000,
  refetchMsMin: 10_000,
  retryMsMin: 2_000,
  fetchMsMax: 5_000,
};

/** The minimum interval of log lines about failures. */
const WARNING_INTERVAL_MS = 60_000;

interface KeySetOptions {
  /** A URL or the path of a file. */
  readonly source: string;
  readonly logger: Logger;
  readonly times?: Partial<KeySetTimes>;
  /** Milliseconds of a monotonic clock; by default `performance.now`. */
  readonly nowMs?: () => number;
}

/** Throws `configuration_invalid`, which names the source and the problem. */
export async function openKeySet(options: KeySetOptions): Promise<KeySet> {
  const { source, logger, times, nowMs = () => performance.now() } = options;
  return /^https?:|^[a-z][\w+.-]*:\/\//i.test(source)
    ? new RemoteKeySet(readUrl(source), { ...KEY_SET_TIMES, ...times }, { logger, nowMs })
    : await fileKeySet(source, logger);
}

/** Error messages omit user name, password and the query, which may contain a token. */
function readUrl(text: string): URL {
  if (!URL.canParse(text)) {
    throw invalid('The URL of the key set is not valid; expected an https URL.');
  }
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') {
    throw invalid(
      `The URL of the key set at ${url.host} contains a user name or a password; expected none, since key sets are public.`,
    );
  }
  const isPrivate =
    url.protocol === 'https:' ||
    (url.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, '')));
  if (!isPrivate) {
    throw invalid(
      `The URL of the key set ${withoutQuery(url)} is not https; expected https unless the host is a loopback address, since anyone who can modify the keys in transit can issue tokens.`,
    );
  }
  return url;
}

const withoutQuery = ({ protocol, host, pathname }: URL) => `${protocol}//${host}${pathname}`;

type FindKey = ReturnType<typeof createLocalJWKSet>;

interface FetchedKeySet {
  readonly find: FindKey;
  readonly fetchedAtMs: number;
}

class RemoteKeySet implements KeySet {
  readonly #url: URL;
  readonly #times: KeySetTimes;
  readonly #logger: Logger;
  readonly #nowMs: () => number;
  /** The result of the last successful fetch. */
  #fetched: FetchedKeySet | null = null;
  /** The error of the last fetch, if it failed. */
  #failure: { readonly error: unknown; readonly atMs: number } | null = null;
  #fetching: Promise<void> | null = null;
  readonly #warnings: LogLimiter;

  constructor(
    url: URL,
    times: KeySetTimes,
    { logger, nowMs }: Required<Pick<KeySetOptions, 'logger' | 'nowMs'>>,
  ) {
    this.#url = url;
    this.#times = times;
    this.#logger = logger;
    this.#nowMs = nowMs;
    this.#warnings = new LogLimiter({ intervalMs: WARNING_INTERVAL_MS, nowMs });
  }

  async getKey(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    const find = await this.#current();
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    await this.#refresh();
    // The key may exist in a newer key set.
    if (this.#failure !== null || this.#fetched === null) throw this.#unavailable();
    return this.#fetched.find(header, token);
  }

  close(): void {}

  async #current(): Promise<FindKey> {
    const { cacheMsMax, staleMsMax } = this.#times;
    if (this.#fetched !== null && this.#ageOf(this.#fetched.fetchedAtMs) < cacheMsMax) {
      return this.#fetched.find;
    }
    const isDown = this.#failure !== null && this.#ageOf(this.#failure.atMs) < cacheMsMax;
    const refreshed = this.#refresh();
    // During an outage of the issuer, requests use the stale key set without waiting.
    if (!isDown || this.#fetched === null) await refreshed;
    if (this.#fetched === null || this.#ageOf(this.#fetched.fetchedAtMs) >= staleMsMax) {
      throw this.#unavailable();
    }
    return this.#fetched.find;
  }

  /** Fetches the key set unless that happened recently; sets `#fetched` or `#failure`. */
  #refresh(): Promise<void> {
    if (this.#fetching !== null) return this.#fetching;
    const { cacheMsMax, refetchMsMin, retryMsMin } = this.#times;
    const isTooSoon =
      this.#failure !== null
        ? this.#ageOf(this.#failure.atMs) < retryMsMin
        : this.#fetched !== null &&
          this.#ageOf(this.#fetched.fetchedAtMs) < Math.min(refetchMsMin, cacheMsMax);
    if (isTooSoon) return Promise.resolve();
    this.#fetching = this.#fetch().finally(() => {
      this.#fetching = null;
    });
    return this.#fetching;
  }

  async #fetch(): Promise<void> {
    try {
      const find = await fetchKeySet(this.#url, this.#times.fetchMsMax);
      this.#fetched = { find, fetchedAtMs: this.#nowMs() };
      this.#failure = null;
    } catch (error) {
      this.#failure = { error, atMs: this.#nowMs() };
      this.#warn(error);
    }
  }

  #warn(error: unknown): void {
    if (this.#warnings.next() === 0) return;
    const secondsOld = this.#fetched && Math.round(this.#ageOf(this.#fetched.fetchedAtMs) / 1000);
    this.#logger.warn(
      { url: withoutQuery(this.#url), reason: describe(error), held_seconds: secondsOld },
      'the key set cannot be fetched',
    );
  }

  #ageOf(atMs: number): number {
    return this.#nowMs() - atMs;
  }

  #unavailable(): SagittaError {
    return new SagittaError(
      'credentials_unavailable',
      "The keys of the token's issuer cannot be fetched at the moment.",
      {
        retryAfterSeconds: Math.ceil(this.#times.retryMsMin / 1000),
        cause: this.#failure?.error,
      },
    );
  }
}

async function fetchKeySet(url: URL, msMax: number): Promise<FindKey> {
  const response = await fetch(url, {
    redirect: 'manual',
    headers: { accept: 'application/json, application/jwk-set+json' },
    signal: AbortSignal.timeout(msMax),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the issuer replied with status ${response.status}; expected 200`);
  }
  const text = await response.text();
  try {
    return createLocalJWKSet(JSON.parse(text));
  } catch {
    // The error of JSON.parse would repeat the contents.
    throw new Error('the reply is not a JSON Web Key Set');
  }
}

async function fileKeySet(path: string, logger: Logger): Promise<KeySet> {
  const file = await openWatchedJson({ what: 'key set', path, logger }, (json) =>
    parseKeySet(json, path),
  );
  return {
    getKey: (header, token) => file.value(header, token),
    close: () => file.close(),
  };
}

const PUBLIC_KEY_SETS = z.looseObject({
  keys: z
    .array(z.looseObject({ kty: z.string(), d: z.never().optional(), k: z.never().optional() }))
    .min(1),
});

function parseKeySet(json: unknown, path: string): FindKey {
  const result = PUBLIC_KEY_SETS.safeParse(json);
  if (result.success) return createLocalJWKSet(json as JSONWebKeySet);
  const location = result.error.issues[0]!.path;
  const isSecret = ['d', 'k'].includes(String(location.at(-1)));
  throw invalid(
    isSecret
      ? `The key set ${path} contains a secret key at /${location.join('/')}; expected public keys only.`
      : `The key set ${path} is not valid at /${location.join('/')}; expected {"keys": [...]} with at least one public key.`,
  );
}

/** The reason of a failed `fetch` is in its cause. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

const invalid = (detail: string) => new SagittaError('configuration_invalid', detail);
