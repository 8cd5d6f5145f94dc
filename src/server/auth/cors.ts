// Cross-origin resource sharing (CORS in the Fetch standard): tells browsers which pages of other origins may send
// requests and read the replies. Only browsers enforce it; it stops no other program. Cookies and client
// certificates are never allowed: pages must send a key or a token.

import type { IncomingHttpHeaders } from 'node:http';
import { SagittaError } from '../../common/errors.js';
import type { Config } from '../../platform/config.js';
import { SESSION } from '../wire/consistency.js';
import type { RouteReply } from '../wire/reply.js';

/** `corsOrigins` contains at least one origin, as browsers send it, or `*` for all. */
export type CorsSettings = Pick<
  Config,
  'corsOrigins' | 'corsMethods' | 'corsHeaders' | 'corsExposedHeaders' | 'corsMaxAgeSeconds'
>;

function isSession(name: string): boolean {
  return name.toLowerCase() === SESSION;
}

export class Cors {
  readonly #settings: CorsSettings;
  readonly #allowsAll: boolean;

  constructor(settings: CorsSettings) {
    // Sagitta-Session is of no use to a page that is not allowed to send it back.
    const maySend = settings.corsHeaders.some(isSession);
    const exposed = settings.corsExposedHeaders.filter((name) => maySend || !isSession(name));
    this.#settings = { ...settings, corsExposedHeaders: exposed };
    this.#allowsAll = settings.corsOrigins.includes('*');
  }

  /** Whether the request is a preflight, with which a browser asks if a page may send another request. */
  isPreflight(method: string, headers: IncomingHttpHeaders): boolean {
    return (
      method === 'OPTIONS' &&
      headers.origin !== undefined &&
      headers['access-control-request-method'] !== undefined
    );
  }

  /** The same for every path, so that pages can read errors too. Throws `origin_not_allowed`. */
  answerPreflight({ origin = '' }: IncomingHttpHeaders): RouteReply {
    if (!this.#allows(origin)) {
      throw new SagittaError(
        'origin_not_allowed',
        `Pages of ${JSON.stringify(origin)} may not use this service; SAGITTA_CORS_ORIGINS lists the allowed origins.`,
      );
    }
    const { corsMethods, corsHeaders, corsMaxAgeSeconds } = this.#settings;
    return {
      status: 204,
      headers: {
        'access-control-allow-methods': corsMethods.join(', '),
        'access-control-allow-headers': corsHeaders.join(', '),
        'access-control-max-age': String(corsMaxAgeSeconds),
      },
      body: '',
    };
  }

  /** Headers of every reply, errors included: without them a browser hides the reply from the page. */
  replyHeaders(origin: string | undefined): Readonly<Record<string, string>> {
    if (origin === undefined || !this.#allows(origin)) return {};
    return {
      'access-control-allow-origin': this.#allowsAll ? '*' : origin,
      'access-control-expose-headers': this.#settings.corsExposedHeaders.join(', '),
    };
  }

  /** The header Vary of a reply: a cache must not serve the reply for one origin to another. */
  varyOf(vary: string | undefined): string | undefined {
    if (this.#allowsAll) return vary;
    return vary === undefined ? 'origin' : `${vary}, origin`;
  }

  #allows(origin: string): boolean {
    return this.#allowsAll || this.#settings.corsOrigins.includes(origin);
  }
}
