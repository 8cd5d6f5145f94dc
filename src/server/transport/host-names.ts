// Protects a service without credentials from DNS rebinding: any web site can point its own name at the
// address of the service and then send requests through the browser of someone who may reach it, with that
// name as Host. So requests are answered only under names that no such site can have.

import { isIP, isIPv6 } from 'node:net';
import { hostname } from 'node:os';
import { SagittaError } from '../../common/errors.js';

/** Characters of a name that a message repeats; a longer one is not the name of a host. */
const SHOWN_CHARACTERS_MAX = 253;

export class HostNames {
  readonly #names: ReadonlySet<string>;
  /** `.example.org` for all names below example.org. */
  readonly #suffixes: readonly string[];
  readonly #allowsAll: boolean;

  /**
   * @param names further ones, `*.example.org` for all below one, or `*` for all.
   * @param ownName of this machine, or of the container.
   */
  constructor(names: readonly string[], ownName = hostname()) {
    const plain = names.map(withoutCase);
    this.#allowsAll = plain.includes('*');
    this.#suffixes = plain.filter((name) => name.startsWith('*.')).map((name) => name.slice(1));
    this.#names = new Set([...plain, 'localhost', withoutCase(ownName)]);
  }

  /** `host` is the header, or `:authority`; browsers always send it. Throws `invalid_request`. */
  check(host: string | undefined): void {
    if (host === undefined || this.#allowsAll) return;
    const name = nameIn(host);
    if (isAddress(name) || this.#names.has(name)) return;
    if (this.#suffixes.some((suffix) => name.endsWith(suffix))) return;
    throw new SagittaError(
      'invalid_request',
      `The Host header is ${JSON.stringify(host.slice(0, SHOWN_CHARACTERS_MAX))}; without credentials, expected localhost, an IP address or the name of this machine, since any web site can give the address of this service a name of its own. List other names of the service in SAGITTA_HOST_NAMES, or create an API key: with a credential every name is accepted.`,
    );
  }
}

/** Without the port, and without the dot at the end that a name may have. */
function nameIn(host: string): string {
  return withoutCase(host.replace(/:\d*$/, ''));
}

function withoutCase(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

/** An address is no name, so nobody can point it elsewhere. */
function isAddress(name: string): boolean {
  const inBrackets = /^\[(.*)\]$/.exec(name)?.[1];
  return inBrackets === undefined ? isIP(name) === 4 : isIPv6(inBrackets);
}
