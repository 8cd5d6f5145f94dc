// Access control: principals and their scopes, independent of credentials and HTTP. A scope may be limited
// to collections by a glob.

/** What each scope allows; the API documentation is generated from these texts. */
export const SCOPE_MEANINGS = {
  'collections:read': 'list collections and read their settings',
  'collections:write': 'create, change and delete collections',
  'vectors:read': 'query, list, count and read vectors',
  'vectors:write': 'write and delete vectors',
  'metrics:read': 'read the metrics of the service',
  admin: 'full access: all of the above, plus keys and backups',
} as const;

export type Scope = keyof typeof SCOPE_MEANINGS;
export const SCOPES = Object.keys(SCOPE_MEANINGS) as Scope[];

export interface Grant {
  readonly scope: Scope;
  /** A glob of collection ids: `*` matches any characters, `?` a single one. */
  readonly collections: string;
}

export interface Principal {
  /** Unique across all kinds of credentials: `key:…`, `token:…`, `certificate:…`, `operator`, `anonymous`. */
  readonly id: string;
  readonly grants: readonly Grant[];
  /** The web pages that may use the credential, by origin; absent for no restriction. */
  readonly allowedOrigins?: readonly string[] | null;
  /** Replaces the rate limits of the service; absent to use those. */
  readonly rateLimit?: RateLimit | null;
}

/** Applies separately to reads and to writes, and counts queries, or vectors read or written. */
export interface RateLimit {
  /** May be a fraction; 0 means no limit. */
  readonly perSecond: number;
  readonly burst: number;
}

const EVERY_COLLECTION = '*';

/** An unauthenticated principal without any scope. */
export const NOBODY: Principal = { id: 'anonymous', grants: [] };

/** The principal of all requests if no credentials are configured. */
export const EVERYBODY: Principal = {
  id: 'anonymous',
  grants: [{ scope: 'admin', collections: EVERY_COLLECTION }],
};

/** The principal of the control socket in the data directory, accessible only to those who may write there. */
export const OPERATOR: Principal = { ...EVERYBODY, id: 'operator' };

/** Scopes of the service as a whole, which cannot be limited to collections. */
export const SERVICE_SCOPES: readonly Scope[] = ['metrics:read'];
const GLOB_PATTERN = /^[\w.*?-]{1,128}$/;

/** Parses `vectors:read` or `vectors:read:catalog-*`; null for anything else. */
export function parseGrant(text: string): Grant | null {
  const scope = SCOPES.find((name) => text === name || text.startsWith(`${name}:`));
  if (scope === undefined) return null;
  if (text === scope) return { scope, collections: EVERY_COLLECTION };
  const collections = text.slice(scope.length + 1);
  if (!GLOB_PATTERN.test(collections) || SERVICE_SCOPES.includes(scope)) return null;
  return { scope, collections };
}

/** Whether the principal has the scope for at least one collection. */
export function holdsScope({ grants }: Principal, scope: Scope): boolean {
  return grants.some((grant) => includes(grant, scope));
}

export function holdsScopeOn({ grants }: Principal, scope: Scope, collectionId: string): boolean {
  return grants.some(
    (grant) => includes(grant, scope) && matchesGlob(grant.collections, collectionId),
  );
}

/** Whether the principal has the scope for all collections, which operations on the service require. */
export function holdsScopeEverywhere({ grants }: Principal, scope: Scope): boolean {
  return grants.some((grant) => includes(grant, scope) && grant.collections === EVERY_COLLECTION);
}

/** Whether the principal may know that the collection exists, that is, has any scope for it. */
export function maySeeCollection({ grants }: Principal, collectionId: string): boolean {
  return grants.some(
    ({ scope, collections }) =>
      !SERVICE_SCOPES.includes(scope) && matchesGlob(collections, collectionId),
  );
}

/** Whether these scopes allow operations on the whole service, such as managing keys. */
export function hasAdminScope(scopes: readonly string[]): boolean {
  const grants = scopes.flatMap((scope) => parseGrant(scope) ?? []);
  return holdsScopeEverywhere({ id: '', grants }, 'admin');
}

/** The members of an API key's record that determine whether, and until when, it can manage other keys. */
interface KeyTerms {
  readonly scopes: readonly string[];
  readonly allowed_origins: readonly string[] | null;
  readonly rate_limit: object | null;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
}

/**
 * Unix time from which no API key can manage the service: infinity if one never expires, negative infinity if none can
 * at `nowMs`. Keys for web pages do not count, since commands cannot use them, nor do keys with their own rate limit,
 * which others may use up.
 */
export function administrationEndsAtMs(keys: readonly KeyTerms[], nowMs: number): number {
  const ends = keys
    .filter(({ allowed_origins, rate_limit }) => allowed_origins === null && rate_limit === null)
    .filter(({ scopes }) => hasAdminScope(scopes))
    .filter(({ revoked_at }) => revoked_at === null)
    .map(({ expires_at }) => (expires_at === null ? Infinity : Date.parse(expires_at)))
    .filter((endMs) => endMs > nowMs);
  return ends.reduce((latest, endMs) => Math.max(latest, endMs), -Infinity);
}

function includes(grant: Grant, scope: Scope): boolean {
  return grant.scope === scope || grant.scope === 'admin';
}

/** Takes time proportional to the product of the lengths for any glob. */
export function matchesGlob(glob: string, text: string): boolean {
  let globAt = 0;
  let textAt = 0;
  let starAt = -1;
  let textAtStar = 0;
  while (textAt < text.length) {
    const expected = glob[globAt];
    if (expected === '*') {
      starAt = globAt++;
      textAtStar = textAt;
    } else if (expected === '?' || (expected !== undefined && expected === text[textAt])) {
      globAt++;
      textAt++;
    } else if (starAt >= 0) {
      // Backtracks: the last star matches one more character.
      globAt = starAt + 1;
      textAt = ++textAtStar;
    } else {
      return false;
    }
  }
  while (glob[globAt] === '*') globAt++;
  return globAt === glob.length;
}
