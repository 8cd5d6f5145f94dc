// Cross-origin resource sharing (CORS, as the Fetch standard defines it): tells browsers which pages of
// other origins may send requests and read the replies. Browsers enforce it, for their users; it keeps
// no program out. Cookies and client certificates are never allowed: pages send a key or a token.

import type { IncomingHttpHeaders } from 'node:http';
import { SagittaError } from '../../common/errors.js';
import type { Config } from '../../platform/config.js';
import { SESSION } from '../wire/consistency.js';
import type { RouteReply } from '../wire/reply.js';

/** At least one origin, as browsers send them, or `*` for all. */
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
    // A client sends back what it is told in this header, which a page may not that is not allowed to.
    const maySend = settings.corsHeaders.some(isSession);
    const exposed = settings.corsExposedHeaders.filter((name) => maySend || !isSession(name));
    this.#settings = { ...settings, corsExposedHeaders: exposed };
    this.#allowsAll = settings.corsOrigins.includes('*');
  }

  /** Whether a browser asks with this request if a page may send another one. */
  isPreflight(method: string, headers: IncomingHttpHeaders): boolean {
    return (
      method === 'OPTIONS' &&
      headers.origin !== undefined &&
      headers['access-control-request-method'] !== undefined
    );
  }

  /** The same for every path, so that the reply to the request itself can be read. Throws `origin_not_allowed`. */
  answerPreflight({ origin = '' }: IncomingHttpHeaders): RouteReply {
    if (!this.#allows(origin)) {
      throw new SagittaError(
        'origin_not_allowed',
        `Pages of ${JSON.stringify(origin)} may not use this service; SAGITTA_CORS_ORIGINS lists the origins that may.`,
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

  /** For every reply, errors included: a browser shows a page nothing of a reply without them. */
  replyHeaders(origin: string | undefined): Readonly<Record<string, string>> {
    if (origin === undefined || !this.#allows(origin)) return {};
    return {
      'access-control-allow-origin': this.#allowsAll ? '*' : origin,
      'access-control-expose-headers': this.#settings.corsExposedHeaders.join(', '),
    };
  }

  /** The header Vary of a reply: a cache must not give the reply for one origin to another. */
  varyOf(vary: string | undefined): string | undefined {
    if (this.#allowsAll) return vary;
    return vary === undefined ? 'origin' : `${vary}, origin`;
  }

  #allows(origin: string): boolean {
    return this.#allowsAll || this.#settings.corsOrigins.includes(origin);
  }
}
