// The proxy that the environment names for a URL, for errors: a proxy that refuses looks like a server that does.

export interface ProxyRuntime {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether fetch heeds these variables: that of Bun and Deno does, and that of Node where it is told to. */
  readonly isUsed: boolean;
}

/** What is read of Node's `process`, which browsers lack. */
interface NodeProcess {
  readonly env?: ProxyRuntime['environment'];
  readonly execArgv?: readonly string[];
}

/** Of this process; undefined in browsers, and where the environment may not be read. */
function proxyRuntime(): ProxyRuntime | undefined {
  const { process } = globalThis as { readonly process?: NodeProcess };
  try {
    const environment = process?.env;
    if (environment === undefined) return undefined;
    const words = [...(process?.execArgv ?? []), environment.NODE_OPTIONS ?? ''].join(' ');
    const isUsed =
      'Bun' in globalThis ||
      'Deno' in globalThis ||
      environment.NODE_USE_ENV_PROXY === '1' ||
      words.includes('--use-env-proxy');
    return { environment, isUsed };
  } catch {
    return undefined;
  }
}

/** What to say about the proxy of a URL, after a failure; undefined without one, and where none may be read. */
export function proxyHint(
  url: string,
  runtime: ProxyRuntime | undefined = proxyRuntime(),
): string | undefined {
  if (runtime === undefined || !URL.canParse(url)) return undefined;
  try {
    return hintFor(url, runtime);
  } catch {
    // Deno asks for a permission for each variable.
    return undefined;
  }
}

function hintFor(url: string, runtime: ProxyRuntime): string | undefined {
  const { environment, isUsed } = runtime;
  const { protocol, hostname, port } = new URL(url);
  const scheme = protocol.slice(0, -1);
  const names = [`${scheme}_proxy`, `${scheme.toUpperCase()}_PROXY`, 'all_proxy', 'ALL_PROXY'];
  const name = names.find((each) => environment[each]);
  if (name === undefined) return undefined;
  const spared = (environment.no_proxy || environment.NO_PROXY || '').split(/[\s,]+/);
  if (spared.some((each) => isSpared(each, hostname, port))) return undefined;
  const proxy = `the proxy ${shownUrl(environment[name]!)}, which ${name} names`;
  return isUsed
    ? `the request goes through ${proxy}; to reach the server without it, add ${hostname} to NO_PROXY`
    : `fetch of Node does not use ${proxy}, unless Node 24 or later runs with NODE_USE_ENV_PROXY=1`;
}

/** An entry of NO_PROXY: all hosts, a host with its subdomains, perhaps with a port. */
function isSpared(entry: string, hostname: string, port: string): boolean {
  if (entry === '*') return true;
  const [host, only] = entry.toLowerCase().split(/:(?=\d+$)/);
  if (!host || (only !== undefined && only !== port)) return false;
  const name = host.replace(/^\*?\./, '');
  return hostname === name || hostname.endsWith(`.${name}`);
}

/**
 * An address as messages may show it: without user name and password, and without query and fragment, which may have
 * tokens. It need not be a valid URL.
 */
export function shownUrl(url: string): string {
  return url.replace(/[?#].*$/s, '').replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1');
}
