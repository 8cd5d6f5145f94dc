// Who asks, and what they may do: principals and the scopes they hold, whatever credential showed
// it. A scope may be limited to collections by a glob. Knows neither HTTP nor where keys are kept.

/** What a scope lets its holder do; the documents are made from these sentences. */
export const SCOPE_MEANINGS = {
  'collections:read': 'see the records of collections',
  'collections:write': 'create, change and delete collections',
  'vectors:read': 'query, list, count and read vectors',
  'vectors:write': 'write and delete vectors',
  'metrics:read': 'read the metrics of the service',
  admin: 'everything: all of the above, keys and backups',
} as const;

export type Scope = keyof typeof SCOPE_MEANINGS;
export const SCOPES = Object.keys(SCOPE_MEANINGS) as Scope[];

export interface Grant {
  readonly scope: Scope;
  /** A glob of collection ids: `*` stands for any characters, `?` for one. */
  readonly collections: string;
}

export interface Principal {
  /** Unique among all carriers: `key:…`, `token:…`, `certificate:…`, `operator`, `anonymous`. */
  readonly id: string;
  readonly grants: readonly Grant[];
}

const EVERY_COLLECTION = '*';

/** Who has not said who it is. */
export const NOBODY: Principal = { id: 'anonymous', grants: [] };

/** Everybody, where no credential is configured. */
export const EVERYBODY: Principal = {
  id: 'anonymous',
  grants: [{ scope: 'admin', collections: EVERY_COLLECTION }],
};

/** Whoever may write the data directory, and so reaches the socket in it. */
export const OPERATOR: Principal = { ...EVERYBODY, id: 'operator' };

/** Scopes of the service itself, which no collection limits. */
const SERVICE_SCOPES: readonly Scope[] = ['metrics:read'];
const GLOB_PATTERN = /^[\w.*?-]{1,128}$/;

/** `vectors:read` or `vectors:read:catalog-*`; null for what is neither. */
export function parseGrant(text: string): Grant | null {
  const scope = SCOPES.find((name) => text === name || text.startsWith(`${name}:`));
  if (scope === undefined) return null;
  if (text === scope) return { scope, collections: EVERY_COLLECTION };
  const collections = text.slice(scope.length + 1);
  if (!GLOB_PATTERN.test(collections) || SERVICE_SCOPES.includes(scope)) return null;
  return { scope, collections };
}

export function formatGrant({ scope, collections }: Grant): string {
  return collections === EVERY_COLLECTION ? scope : `${scope}:${collections}`;
}

/** For at least one collection, whichever. */
export function holdsScope({ grants }: Principal, scope: Scope): boolean {
  return grants.some((grant) => includes(grant, scope));
}

export function holdsScopeOn({ grants }: Principal, scope: Scope, collectionId: string): boolean {
  return grants.some(
    (grant) => includes(grant, scope) && matchesGlob(grant.collections, collectionId),
  );
}

/** For the service as a whole, which a grant for some collections is not enough for. */
export function holdsScopeEverywhere({ grants }: Principal, scope: Scope): boolean {
  return grants.some((grant) => includes(grant, scope) && grant.collections === EVERY_COLLECTION);
}

/** Whether the collection exists for this principal: what it may do nothing with, it does not see. */
export function seesCollection({ grants }: Principal, collectionId: string): boolean {
  return grants.some(
    ({ scope, collections }) =>
      !SERVICE_SCOPES.includes(scope) && matchesGlob(collections, collectionId),
  );
}

function includes(grant: Grant, scope: Scope): boolean {
  return grant.scope === scope || grant.scope === 'admin';
}

/** In time proportional to the product of the lengths, whatever the glob. */
export function matchesGlob(glob: string, text: string): boolean {
  let at = 0;
  let place = 0;
  let starAt = -1;
  let placeAtStar = 0;
  while (place < text.length) {
    const expected = glob[at];
    if (expected === '*') {
      starAt = at++;
      placeAtStar = place;
    } else if (expected === '?' || (expected !== undefined && expected === text[place])) {
      at++;
      place++;
    } else if (starAt >= 0) {
      // The last star takes one character more.
      at = starAt + 1;
      place = ++placeAtStar;
    } else {
      return false;
    }
  }
  while (glob[at] === '*') at++;
  return at === glob.length;
}
