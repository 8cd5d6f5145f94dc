// Finds the proxy that the environment sets for a URL, for error messages: a refusal by a proxy looks like one by the
// server.

export interface ProxyRuntime {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether fetch honours these variables: Bun and Deno always do, Node only when told to. */
  readonly isUsed: boolean;
}

/** The part of Node's `process` that is read; browsers have none. */
interface NodeProcess {
  readonly env?: ProxyRuntime['environment'];
  readonly execArgv?: readonly string[];
}

/** The runtime of this process; undefined in browsers and where the environment may not be read. */
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

/** A hint about the proxy for a URL, for use after a failure; undefined if no proxy is known. */
export function proxyHint(
  url: string,
  runtime: ProxyRuntime | undefined = proxyRuntime(),
): string | undefined {
  if (runtime === undefined || !URL.canParse(url)) return undefined;
  try {
    return hintFor(url, runtime);
  } catch {
    // Deno requires a permission for each variable.
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
  const exceptions = (environment.no_proxy || environment.NO_PROXY || '').split(/[\s,]+/);
  if (exceptions.some((entry) => isExcepted(entry, hostname, port))) return undefined;
  const proxy = `the proxy ${shownUrl(environment[name]!)}, which ${name} names`;
  return isUsed
    ? `the request goes through ${proxy}; to reach the server without it, add ${hostname} to NO_PROXY`
    : `fetch of Node does not use ${proxy}, unless Node 24 or later runs with NODE_USE_ENV_PROXY=1`;
}

/** Whether an entry of NO_PROXY (`*`, or a host with its subdomains and an optional port) covers the host. */
function isExcepted(entry: string, hostname: string, port: string): boolean {
  if (entry === '*') return true;
  const [host, only] = entry.toLowerCase().split(/:(?=\d+$)/);
  if (!host || (only !== undefined && only !== port)) return false;
  const name = host.replace(/^\*?\./, '');
  return hostname === name || hostname.endsWith(`.${name}`);
}

/**
 * The address without its user name, password, query and fragment, which may hold secrets. It need not be a valid URL.
 */
export function shownUrl(url: string): string {
  return url.replace(/[?#].*$/s, '').replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1');
}
