// Protects a service without credentials from DNS rebinding: any web site can point its own name at the address of
// the service and send requests with that name as Host through the browser of a user who can reach the service. So
// requests are answered only under names that no such site can have.

import { isIP, isIPv6 } from 'node:net';
import { hostname } from 'node:os';
import { SagittaError } from '../../common/errors.js';

/** The maximum length of a host name; a message repeats no more of a header. */
const SHOWN_CHARACTERS_MAX = 253;

export class HostNames {
  readonly #names: ReadonlySet<string>;
  /** `.example.org` for all names below example.org. */
  readonly #suffixes: readonly string[];
  /** The last header that was accepted, which most requests repeat. */
  #accepted: string | undefined;
  readonly #allowsAll: boolean;

  /**
   * @param names additional names, `*.example.org` for all names below example.org, or `*` for all.
   * @param ownName the name of this machine or container.
   */
  constructor(names: readonly string[], ownName = hostname()) {
    const plain = names.map(withoutCase);
    this.#allowsAll = plain.includes('*');
    this.#suffixes = plain.filter((name) => name.startsWith('*.')).map((name) => name.slice(1));
    this.#names = new Set([...plain, 'localhost', withoutCase(ownName)]);
  }

  /** `host` is the header or `:authority`, one of which browsers always send. Throws `invalid_request`. */
  check(host: string | undefined): void {
    if (host === undefined || host === this.#accepted || this.#allowsAll) return;
    const name = nameIn(host);
    if (
      isAddress(name) ||
      this.#names.has(name) ||
      this.#suffixes.some((suffix) => name.endsWith(suffix))
    ) {
      this.#accepted = host;
      return;
    }
    throw new SagittaError(
      'invalid_request',
      `The Host header is ${JSON.stringify(host.slice(0, SHOWN_CHARACTERS_MAX))}; without credentials, expected localhost, an IP address or the name of this machine, since any web site can give the address of this service its own name. List other names of the service in SAGITTA_HOST_NAMES, or create an API key: with a credential every name is accepted.`,
    );
  }
}

/** The name without its port and without a trailing dot. */
function nameIn(host: string): string {
  return withoutCase(host.replace(/:\d*$/, ''));
}

function withoutCase(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

/** An address cannot be rebound. */
function isAddress(name: string): boolean {
  const inBrackets = /^\[(.*)\]$/.exec(name)?.[1];
  return inBrackets === undefined ? isIP(name) === 4 : isIPv6(inBrackets);
}
