// Every route of the application without a credential, with insufficient and with sufficient scopes.
// The list of routes is that of the application, so that a new route cannot be left out.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { SCOPES, type Scope } from '../../../src/common/access.js';
import type { Database } from '../../../src/database/database.js';
import { routesOf } from '../../../src/server/app.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import type { Route } from '../../../src/server/requests/route.js';
import { openDatabase } from '../../database/harness.js';
import { createService, expectProblem, type Reply, type Service } from '../harness.js';
import { addAlias, COLLECTION, fillCollection, SAMPLE_REQUESTS } from '../requests.js';

interface GuardedService extends Service {
  readonly real: Database;
  /** Creates a key with these scopes and calls with it. */
  callWith(scopes: readonly string[], route: Route): Promise<Reply>;
  callAs(key: string | null, method: string, url: string, body?: unknown): Promise<Reply>;
  makeKey(...scopes: string[]): Promise<string>;
}

/** A service with API keys over a real database, whose routes need a credential. */
async function openService(options: { isFilled: boolean } = { isFilled: true }) {
  const real = await openDatabase({});
  if (options.isFilled) {
    await fillCollection(real);
    await addAlias(real);
  }
  const authenticator = new Authenticator({ apiKeys: real.apiKeys });
  const service = await createService({ database: real, authenticator });
  const makeKey = async (...scopes: string[]) =>
    (await real.apiKeys.create({ owner: 'test', scopes, expiresAt: null })).key;
  await makeKey('metrics:read');
  const callAs: GuardedService['callAs'] = (key, method, url, body) =>
    service.call(method, url, {
      ...(body === undefined ? {} : { body }),
      headers: key === null ? {} : { authorization: `Bearer ${key}` },
    });
  const guarded: GuardedService = {
    ...service,
    real,
    makeKey,
    callAs,
    callWith: async (scopes, route) => {
      const { url, body } = sampleOf(route, real);
      return callAs(await makeKey(...scopes), route.method, url, body);
    },
    async close() {
      await service.close();
      await real.close();
    },
  };
  return guarded;
}

function sampleOf(route: Route, database: Database) {
  const sample = SAMPLE_REQUESTS[route.operationId];
  assert.ok(sample, `${route.operationId} has no request in test/server/requests.ts`);
  return { ...sample, url: sample.url.replace('{key}', database.apiKeys.list()[0]!.id) };
}

/** Provides the list of routes, from which tests are named. */
const listing = await createService();
const routes = routesOf(listing.app);
await listing.close();

const guarded = routes.filter(({ access }) => access !== 'public');
const scoped = routes.flatMap((route) =>
  typeof route.access === 'object' ? [{ route, ...route.access }] : [],
);
const named = (route: Route) => `${route.method} ${route.path}`;

describe('the list of requests', () => {
  it('has one for each route, and no others', () => {
    assert.deepEqual(
      Object.keys(SAMPLE_REQUESTS).sort(),
      routes.map(({ operationId }) => operationId).sort(),
    );
    assert.ok(scoped.length > 20);
  });

  it('states the access that each route requires', () => {
    for (const { operationId, access } of routes) {
      const found = typeof access === 'string' ? access : `${access.scope} ${access.on}`;
      assert.equal(found, SAMPLE_REQUESTS[operationId]?.needs, operationId);
    }
  });
});

describe('without a credential', () => {
  let service: GuardedService;
  before(async () => {
    service = await openService();
  });
  after(() => service.close());

  for (const route of guarded) {
    it(`${named(route)} is 401 with WWW-Authenticate`, async () => {
      const { url, body } = sampleOf(route, service.real);
      for (const prefix of route.isOperational === true ? [''] : ['', '/v1']) {
        const calling = service.callAs(null, route.method, prefix + url, body);
        const reply = await expectProblem(calling, 401, 'credentials_missing');
        assert.equal(reply.headers['www-authenticate'], 'Bearer realm="sagitta"');
        if (route.method === 'GET') {
          const head = await service.callAs(null, 'HEAD', prefix + url);
          assert.equal(head.status, 401);
        }
      }
    });
  }

  for (const route of routes.filter(({ access }) => access === 'public')) {
    it(`${named(route)} replies, also with an invalid credential`, async () => {
      const { url } = sampleOf(route, service.real);
      for (const headers of [{}, { authorization: 'Bearer sk_wrong' }]) {
        assert.equal((await service.app.inject({ url, headers })).statusCode, 200);
      }
    });
  }

  it('nothing was written', () => {
    assert.equal(service.real.collection(COLLECTION).record().sequence, 1);
    assert.equal(service.real.apiKeys.list().length, 1);
  });

  it('a request is refused before its body arrives', async () => {
    const reply = await service.call('POST', '/query', { body: 'not even JSON' });
    assert.equal(reply.status, 401);
  });
});

describe('with an invalid credential', () => {
  let service: GuardedService;
  before(async () => {
    service = await openService();
  });
  after(() => service.close());

  it('a request is 401 without details', async () => {
    for (const authorization of [
      'Bearer sk_0123456789abcdef_0123456789012345678901234567890123456789012',
      'Bearer sk_',
      'Bearer x.y.z',
      'Bearer',
      'Bearer  ',
      'Basic dXNlcjpwYXNz',
      'sk_0123456789abcdef',
      'Bearer a b',
      'Bearer a, Bearer b',
      '',
    ]) {
      const calling = service.call('GET', '/limits', { headers: { authorization } });
      const reply = await expectProblem(calling, 401, 'credentials_invalid');
      assert.equal(
        reply.headers['www-authenticate'],
        'Bearer realm="sagitta", error="invalid_token"',
      );
    }
  });

  it('the scheme Bearer is case-insensitive', async () => {
    const key = await service.makeKey('vectors:read');
    for (const word of ['bearer', 'BEARER', 'Bearer ']) {
      const headers = { authorization: `${word} ${key}` };
      assert.equal((await service.call('GET', '/limits', { headers })).status, 200);
    }
  });
});

describe('with insufficient scopes', () => {
  let service: GuardedService;
  before(async () => {
    service = await openService();
  });
  after(() => service.close());

  for (const { route, scope, on } of scoped) {
    it(`${named(route)} is refused with every scope but ${scope}`, async () => {
      const others = SCOPES.filter((other) => other !== scope && other !== 'admin');
      for (const other of others) {
        const reply = await service.callWith([other], route);
        assertRefused(reply, scope, `with ${other}`);
        // Collections that its scope shows are 403; all others are 404.
        const sees = on !== 'path' || other !== 'metrics:read';
        assert.equal(reply.status, sees ? 403 : 404, `with ${other}`);
      }
      assertRefused(await service.callWith(others, route), scope, 'with all others');
    });

    if (on === 'path' || on === 'named') {
      it(`${named(route)} is refused with ${scope} for other collections`, async () => {
        for (const grant of [`${scope}:orders*`, `admin:orders*`, `${scope}:catalog-`]) {
          const reply = await service.callWith([grant], route);
          const { refusal = 'collection_not_found' } = SAMPLE_REQUESTS[route.operationId]!;
          assert.equal(reply.json.code, refusal);
        }
        // Another scope lets it see the collection, so the error names the missing scope.
        const reader = [`${scope}:orders`, `${otherScope(scope)}:catalog-*`];
        const reply = await service.callWith(reader, route);
        assert.equal(reply.json.code, 'insufficient_scope');
        assert.match(reply.json.detail, new RegExp(`${scope} on the collection "catalog-`));
      });
    }

    if (on === 'service') {
      it(`${named(route)} is refused with ${scope} for some collections only`, async () => {
        const reply = await service.callWith(['admin:catalog-*'], route);
        assertRefused(reply, scope, 'with admin:catalog-*');
      });
    }
  }

  it('nothing was written', () => {
    assert.equal(service.real.collection(COLLECTION).record().sequence, 1);
    assert.equal(service.real.listCollections({}).total, 2);
    assert.equal(service.real.alias('catalog-a')?.collection, 'catalog-9');
    assert.ok(service.real.apiKeys.list().every(({ owner }) => owner === 'test'));
  });
});

describe('with a sufficient scope', () => {
  for (const route of guarded) {
    const { access } = route;
    const sufficient: string[][] =
      typeof access === 'string'
        ? SCOPES.map((scope) => [scope])
        : [[access.scope], ['admin'], ...limitedGrants(access).map((grant) => [grant])];
    it(`${named(route)} replies`, async () => {
      for (const scopes of sufficient) {
        const service = await openService();
        try {
          const { alsoNeeds, status: expected = 200 } = SAMPLE_REQUESTS[route.operationId]!;
          const reply = await service.callWith([...scopes, ...grantsOf(alsoNeeds)], route);
          assert.equal(reply.status, expected, `${scopes}: ${reply.text}`);
        } finally {
          await service.close();
        }
      }
    });
  }
});

describe('a collection that the principal may not see', () => {
  let service: GuardedService;
  beforeEach(async () => {
    service = await openService({ isFilled: false });
  });
  afterEach(() => service.close());

  it('has the same replies, byte for byte, as one that does not exist', async () => {
    const onCollections = scoped.filter(
      ({ route, on }) =>
        (on === 'path' || on === 'named') &&
        SAMPLE_REQUESTS[route.operationId]?.refusal === undefined,
    );
    assert.ok(onCollections.length > 10);
    const answers = async (grant: (scope: Scope) => string) => {
      const texts: { headers: Reply['headers']; text: string }[] = [];
      for (const { route, scope } of onCollections) {
        const { alsoNeeds } = SAMPLE_REQUESTS[route.operationId]!;
        const grants = [scope, ...grantsOf(alsoNeeds)].map(grant);
        const reply = await service.callWith(grants, route);
        assert.equal(reply.status, 404, named(route));
        const { 'x-request-id': id, date: _, ratelimit: __, ...headers } = reply.headers;
        texts.push({ headers, text: reply.text.replaceAll(id!, '') });
      }
      return texts;
    };
    // A missing collection for any principal, and an existing one for principals that must not see it.
    const missing = await answers((scope) => scope);
    const missingForOthers = await answers((scope) => `${scope}:orders-*`);
    await fillCollection(service.real);
    const forbidden = await answers((scope) => `${scope}:orders-*`);
    assert.deepEqual(forbidden, missingForOthers);
    assert.deepEqual(forbidden, missing);
  });

  it('is neither listed nor counted', async () => {
    for (const id of ['catalog-1', 'catalog-2', 'orders-1']) await fillCollection(service.real, id);
    const ids = async (...scopes: string[]) => {
      const key = await service.makeKey(...scopes);
      const { json } = await service.callAs(key, 'GET', '/collections');
      assert.equal(json.total, json.collections.length);
      return json.collections.map(({ id }: { id: string }) => id);
    };
    assert.deepEqual(await ids('collections:read:catalog-*'), ['catalog-1', 'catalog-2']);
    assert.deepEqual(await ids('collections:read:*-1'), ['catalog-1', 'orders-1']);
    assert.deepEqual(await ids('collections:read:nothing'), []);
    assert.deepEqual(await ids('collections:read'), ['catalog-1', 'catalog-2', 'orders-1']);
    // A scope for vectors does not include the records of collections.
    assert.deepEqual(await ids('collections:read:orders-*', 'vectors:read'), ['orders-1']);

    const key = await service.makeKey('collections:read:*-1');
    const first = await service.callAs(key, 'GET', '/collections?limit=1');
    assert.deepEqual([first.json.total, first.json.has_more], [2, true]);
    const next = `/collections?limit=1&cursor=${first.json.next_cursor}`;
    const second = await service.callAs(key, 'GET', next);
    assert.equal(second.json.collections[0].id, 'orders-1');
    assert.equal(second.json.has_more, false);
  });

  it('is refused wherever the request names it', async () => {
    for (const id of ['catalog-1', 'orders-1']) await fillCollection(service.real, id);
    const key = await service.makeKey('vectors:read:catalog-*', 'vectors:write:catalog-*');
    const call = (method: string, url: string, body?: object) =>
      service.callAs(key, method, url, body);
    const vector = { vector: [1, 1] };
    const values = { values: [1, 1] };
    for (const refused of [
      call('POST', '/query', { ...vector, collection: 'orders-1' }),
      call('POST', '/query?collection=orders-1', vector),
      // The body takes precedence over the query string.
      call('POST', '/query?collection=catalog-1', { ...vector, collection: 'orders-1' }),
      call('PUT', '/vectors/x', { ...values, collection: 'orders-1' }),
      call('PUT', '/vectors/x?collection=orders-1', values),
      call('PUT', '/vectors/orders-1?collection=orders-1', values),
      call('PUT', '/vectors/x?collection=catalog-1', { ...values, collection: 'orders-1' }),
      call('GET', '/vectors?collection=orders-1'),
      call('GET', '/collections/%6Frders-1/vectors'),
      call('POST', '/v1/collections/orders-1/query', vector),
    ]) {
      await expectProblem(refused, 404, 'collection_not_found');
    }
    for (const allowed of [
      call('POST', '/query?collection=orders-1', { ...vector, collection: 'catalog-1' }),
      call('PUT', '/vectors/x?collection=orders-1', { ...values, collection: 'catalog-1' }),
      call('GET', '/vectors?collection=catalog-1'),
      call('GET', '/collections/%63atalog-1/vectors'),
    ]) {
      assert.equal((await allowed).status, 200);
    }
    assert.equal(service.real.collection('orders-1').record().sequence, 1);
  });

  it('is not reached by an alias, which does not exist for the principal either', async () => {
    await fillCollection(service.real, 'orders-1');
    const admin = await service.makeKey('admin');
    const target = { collection: 'orders-1' };
    assert.equal((await service.callAs(admin, 'PUT', '/aliases/catalog-a', target)).status, 200);
    const grants = ['vectors:read', 'collections:read', 'collections:write'];
    const key = await service.makeKey(...grants.map((scope) => `${scope}:catalog-*`));
    const vector = { vector: [1, 1] };
    for (const [method, url, body] of [
      ['POST', '/collections/catalog-a/query', vector],
      ['POST', '/query', { ...vector, collection: 'catalog-a' }],
      ['GET', '/vectors?collection=catalog-a', undefined],
      ['PUT', '/aliases/catalog-a', { collection: 'catalog-1' }],
      ['PUT', '/aliases/catalog-b', target],
    ] as const) {
      const refused = service.callAs(key, method, url, body);
      const reply = await expectProblem(refused, 404, 'collection_not_found');
      // The error contains the name in the request but not the id behind the alias.
      if (body !== target) assert.ok(!reply.text.includes('orders-1'), `${method} ${url}`);
    }
    const same = { id: 'catalog-a', dimension: 2, metric: 'dot' };
    const create = service.callAs(key, 'POST', '/collections?if_not_exists=true', same);
    await expectProblem(create, 409, 'collection_exists');
    const read = service.callAs(key, 'GET', '/aliases/catalog-a');
    await expectProblem(read, 404, 'alias_not_found');
    assert.equal((await service.callAs(key, 'GET', '/aliases')).json.total, 0);
    // The scope on the collection is enough to read it by an alias outside the glob.
    await fillCollection(service.real, 'catalog-1');
    const named = { collection: 'catalog-1' };
    assert.equal((await service.callAs(admin, 'PUT', '/aliases/live', named)).status, 200);
    const found = await service.callAs(key, 'POST', '/collections/live/query', vector);
    assert.equal(found.status, 200);
    const taken = service.callAs(key, 'PUT', '/aliases/live', named);
    await expectProblem(taken, 403, 'insufficient_scope');
  });

  it('is neither cloned nor renamed to where its vectors could be read', async () => {
    await fillCollection(service.real, 'orders-1');
    const key = await service.makeKey('collections:write', 'vectors:read:catalog-*');
    for (const way of ['clone', 'rename']) {
      const copy = service.callAs(key, 'POST', `/collections/orders-1/${way}`, { id: 'catalog-1' });
      const reply = await expectProblem(copy, 403, 'insufficient_scope');
      assert.match(reply.json.detail, /vectors:read/);
    }
  });

  it('cannot be created, whether or not it exists', async () => {
    await fillCollection(service.real, 'orders-1');
    const key = await service.makeKey('collections:write:catalog-*');
    const create = (id: string | undefined, query = '') =>
      service.callAs(key, 'POST', `/collections${query}`, { ...(id && { id }), dimension: 2 });
    for (const query of ['', '?if_not_exists=true']) {
      for (const id of ['orders-1', 'orders-2', undefined]) {
        const reply = await expectProblem(create(id, query), 403, 'insufficient_scope');
        assert.match(reply.headers['www-authenticate']!, /scope="collections:write"/);
      }
    }
    assert.equal((await create('catalog-1')).status, 200);
    assert.equal(service.real.listCollections({}).total, 2);
  });
});

describe('an idempotency key', () => {
  it('is separate for each principal', async () => {
    const service = await openService({ isFilled: false });
    try {
      const body = { id: 'c', dimension: 2, idempotency_key: 'import-1' };
      const first = await service.makeKey('collections:write', 'vectors:write');
      const second = await service.makeKey('collections:write', 'vectors:write');
      const create = (key: string) => service.callAs(key, 'POST', '/collections', body);
      assert.equal((await create(first)).status, 200);
      assert.equal((await create(first)).headers['idempotent-replayed'], 'true');
      const reply = await expectProblem(create(second), 409, 'collection_exists');
      assert.equal(reply.headers['idempotent-replayed'], undefined);

      const rows = { vectors: [{ values: [1, 2] }], idempotency_key: 'rows' };
      const write = async (key: string) =>
        (await service.callAs(key, 'POST', '/collections/c/vectors', rows)).json.ids[0];
      const made = await write(first);
      assert.equal(await write(first), made);
      assert.notEqual(await write(second), made);
    } finally {
      await service.close();
    }
  });

  it('replays nothing to a principal that lost its scope', async () => {
    const service = await openService();
    try {
      const body = { vectors: [{ id: 'n', values: [1, 2] }], idempotency_key: 'rows' };
      const { key, record } = await service.real.apiKeys.create({
        owner: 'test',
        scopes: ['vectors:write'],
        expiresAt: null,
      });
      const write = () => service.callAs(key, 'POST', '/collections/catalog-1/vectors', body);
      assert.equal((await write()).status, 200);
      await service.real.apiKeys.revoke(record.id);
      await expectProblem(write(), 401, 'credentials_invalid');
    } finally {
      await service.close();
    }
  });
});

function assertRefused(reply: Reply, scope: Scope, place: string): void {
  assert.ok(reply.status === 403 || reply.status === 404, `${place}: ${reply.text}`);
  const code = reply.status === 403 ? 'insufficient_scope' : 'collection_not_found';
  assert.equal(reply.json.code, code, place);
  const challenge = reply.headers['www-authenticate'];
  if (reply.status === 404) assert.equal(challenge, undefined);
  else
    assert.equal(challenge, `Bearer realm="sagitta", error="insufficient_scope", scope="${scope}"`);
}

const grantsOf = (scope: Scope | undefined): Scope[] => (scope === undefined ? [] : [scope]);

const otherScope = (scope: Scope): Scope =>
  scope === 'vectors:read' ? 'collections:read' : 'vectors:read';

/** The scope, limited to the collection of the request if scopes of this kind can be limited. */
function limitedGrants({ scope, on }: { scope: Scope; on: string }): string[] {
  return on === 'service' ? [] : [`${scope}:catalog-?`];
}
