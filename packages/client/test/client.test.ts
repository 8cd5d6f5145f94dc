// The client against a real server: every method, paging, and difficult ids and numbers.

import assert from 'node:assert/strict';
import { after, before, beforeEach, it } from 'node:test';
import { createService } from '../../../test/server/harness.js';
import { listen } from '../../../test/server/wire.js';
import { startTestServer, type TestServer } from '../../../test/support/server-in-process.js';
import {
  type Client,
  type CollectionRecord,
  createClient,
  decodeValues,
  encodeValues,
  type Match,
  type Vectors,
} from '../src/client.js';

let server: TestServer;
let client: Client;
let vectors: Vectors;
let collectionId: string;
let collectionCount = 0;

before(async () => {
  server = await startTestServer();
  client = createClient({ baseUrl: server.url });
});
after(() => server.close());

beforeEach(async () => {
  collectionId = `c${collectionCount++}`;
  await client.collections.create({ id: collectionId, dimension: 2, metric: 'dot' });
  vectors = client.collection(collectionId);
});

const idsOf = (found: readonly { readonly id: string }[]) => found.map(({ id }) => id);

it('creates, lists, changes and deletes collections', async () => {
  const input = {
    id: 'articles',
    dimension: 3,
    metric: 'euclidean',
    labels: { team: 'a' },
  } as const;
  const created = await client.collections.create(input);
  assert.equal(created.metric, 'euclidean');
  await assert.rejects(client.collections.create(input), {
    code: 'collection_exists',
    status: 409,
  });
  const same = await client.collections.create(input, { ifNotExists: true });
  assert.equal(same.created_at, created.created_at);

  const changed = await client.collections.update('articles', { description: 'of the site' });
  assert.equal(changed.description, 'of the site');
  assert.deepEqual((await client.collections.get('articles')).labels, { team: 'a' });

  const listed: CollectionRecord[] = [];
  for await (const page of client.collections.pages({ limit: 1 })) listed.push(...page.collections);
  assert.ok(idsOf(listed).includes('articles'));
  assert.equal(new Set(idsOf(listed)).size, (await client.collections.list()).total);
  const each: CollectionRecord[] = [];
  for await (const record of client.collections.all({ limit: 1 })) each.push(record);
  assert.deepEqual(idsOf(each), idsOf(listed));

  assert.equal((await client.collections.delete('articles')).vector_count, 0);
  await assert.rejects(client.collections.get('articles'), { code: 'collection_not_found' });
});

it('adds named vectors to a collection, fills and drops them', async () => {
  const values = [1, 2];
  await vectors.upsert(['a', 'b', 'c'].map((id) => ({ id, values, metadata: { id, n: 1 } })));
  const added = await client.collections.update(collectionId, {
    vectors: { summary: { dimension: 2, metric: 'dot' } },
    sparse_vectors: { words: {} },
  });
  assert.deepEqual(added.vectors, { summary: { dimension: 2, metric: 'dot' } });
  const patched = await vectors.upsert(
    [
      { id: 'a', vectors: { summary: new Float32Array([3, 0]) }, metadata: { n: null } },
      { id: 'b', sparse_vectors: { words: { indices: [7], values: [1] } } },
    ],
    { mode: 'patch' },
  );
  assert.deepEqual([patched.inserted_count, patched.updated_count], [0, 2]);
  await vectors.writeAll([{ id: 'c', vectors: { summary: [2, 0] } }], { mode: 'patch' });
  const { matches } = await vectors.query({ vector: [1, 0], using: 'summary' });
  assert.deepEqual(idsOf(matches), ['a', 'c']);
  const { vectors: stored } = await vectors.fetch(['a', 'b'], { include_values: true });
  assert.deepEqual(stored, [
    { id: 'a', values, vectors: { summary: [3, 0] }, sparse_vectors: {}, metadata: { id: 'a' } },
    {
      id: 'b',
      values,
      vectors: {},
      sparse_vectors: { words: { indices: [7], values: [1] } },
      metadata: { id: 'b', n: 1 },
    },
  ]);

  await vectors.upsert([{ id: 'a', vectors: { summary: null } }], { mode: 'patch' });
  assert.deepEqual((await vectors.get('a')).vectors, {});
  const unknown = vectors.upsert([{ id: 'x', vectors: { summary: [1, 1] } }], { mode: 'patch' });
  await assert.rejects(unknown, { code: 'vector_not_found' });
  const dropped = { vectors: { summary: null }, sparse_vectors: { words: null } };
  assert.equal((await client.collections.update(collectionId, dropped)).vectors, undefined);
  await assert.rejects(client.collections.update(collectionId, dropped), {
    code: 'invalid_request',
  });
});

it('writes, reads, changes and deletes vectors', async () => {
  const written = await vectors.upsert([
    { id: 'a', values: [1, 2], metadata: { year: 2024 } },
    { id: 'b', values: [3, 4] },
  ]);
  assert.equal(written.inserted_count, 2);
  assert.deepEqual((await vectors.get('a')).values, [1, 2]);
  assert.equal((await vectors.get('a', { include_values: false })).values, undefined);

  assert.equal((await vectors.put({ id: 'a', values: [5, 6] })).created, false);
  await vectors.patch('a', { metadata: { lang: 'en' }, values: [7, 8] });
  const { values, metadata } = await vectors.get('a');
  assert.deepEqual({ values, metadata }, { values: [7, 8], metadata: { lang: 'en' } });

  const fetched = await vectors.fetch(['b', 'x'], { include_metadata: false });
  assert.deepEqual(fetched, { vectors: [{ id: 'b', values: [3, 4] }], not_found: ['x'] });
  assert.equal(await vectors.count(), 2);
  assert.equal(await vectors.count({ filter: { lang: 'en' } }), 1);

  assert.equal((await vectors.delete('b')).deleted, true);
  const dry = await vectors.deleteMany({ filter: { lang: 'en' } }, { dryRun: true });
  assert.equal(dry.deleted_count, 1);
  assert.equal(await vectors.count(), 1);
  await vectors.deleteMany({ ids: ['a'] });
  assert.equal(await vectors.count(), 0);
});

it('write modes reject existing or missing vectors', async () => {
  await vectors.upsert([{ id: 'a', values: [1, 2] }], { mode: 'insert' });
  const again = vectors.upsert([{ id: 'a', values: [1, 2] }], { mode: 'insert' });
  await assert.rejects(again, { code: 'vector_exists' });
  const missing = vectors.upsertText(['{"id":"b","values":[1,2]}'], { mode: 'update' });
  await assert.rejects(missing, { code: 'vector_not_found' });
});

it('a write repeated with the same key is executed once', async () => {
  const options = { idempotencyKey: 'import-1' };
  const first = await vectors.upsert([{ values: [1, 2] }], options);
  const second = await vectors.upsert([{ values: [1, 2] }], options);
  assert.deepEqual(second, first);
  assert.equal(first.ids?.length, 1);
  assert.equal(await vectors.count(), 1);
});

it('a patch with if-match fails once the vector has changed', async () => {
  await vectors.upsert([{ id: 'a', values: [1, 2] }]);
  const { etag } = await vectors.get('a');
  assert.ok(etag !== undefined);
  await vectors.patch('a', { metadata: { n: 1 } }, { ifMatch: etag });
  const late = vectors.patch('a', { metadata: { n: 2 } }, { ifMatch: etag });
  await assert.rejects(late, { code: 'precondition_failed', status: 412 });
});

it('clones, renames and switches collections by alias', async () => {
  await vectors.upsert([{ id: 'a', values: [1, 2] }]);
  const { aliases, collections } = client;
  assert.equal((await aliases.set('live', collectionId)).collection, collectionId);
  const copyId = `${collectionId}-copy`;
  const copy = await collections.clone('live', { id: copyId, description: 'copy' });
  assert.deepEqual([copy.vector_count, copy.description], [1, 'copy']);
  await assert.rejects(collections.delete(collectionId), { code: 'collection_aliased' });
  const changed = await aliases.change({ live: copyId, old: collectionId, none: null });
  assert.deepEqual(
    changed.map(({ name, collection }) => [name, collection]),
    [
      ['live', copyId],
      ['old', collectionId],
    ],
  );
  assert.equal((await collections.rename('old', `${collectionId}-old`)).id, `${collectionId}-old`);
  assert.equal((await aliases.get('old')).collection, `${collectionId}-old`);
  assert.equal((await client.collection('live').get('a')).id, 'a');
  const names: string[] = [];
  for await (const { name } of aliases.all({ limit: 1 })) names.push(name);
  assert.deepEqual(names, ['live', 'old']);
  assert.equal((await aliases.list()).total, 2);
  for (const name of names) assert.deepEqual(await aliases.delete(name), { name, deleted: true });
  await assert.rejects(aliases.get('live'), { code: 'alias_not_found', status: 404 });
});

it('updates by filter, writes conditionally, and lets vectors expire', async () => {
  await vectors.upsert([
    { id: 'a', values: [1, 2], metadata: { x: 1 }, if_sequence: 0 },
    { id: 'b', values: [1, 2], metadata: { x: 2 }, expires_at: '2199-01-31T12:00:00Z' },
  ]);
  const update = await vectors.updateMany({ filter: { x: 1 } }, { patch: { y: true } });
  assert.deepEqual([update.updated_count, update.has_more], [1, false]);
  const step = await vectors.updateMany({ all: true }, { metadata: {} }, { limit: 1 });
  assert.deepEqual([step.updated_count, step.has_more], [1, true]);
  const read = await vectors.get('a', { include_sequence: true });
  assert.deepEqual([read.metadata, read.sequence], [{ x: 1, y: true }, 2]);
  assert.equal((await vectors.get('b')).expires_at, '2199-01-31T12:00:00.000Z');
  await vectors.patch('b', { expires_at: null });
  assert.equal((await vectors.get('b')).expires_at, undefined);
  const late = { values: [3, 4], if_sequence: 1 };
  await assert.rejects(vectors.put({ id: 'a', ...late }), { code: 'precondition_failed' });
  await assert.rejects(vectors.patch('a', late), { code: 'precondition_failed' });
  await vectors.put({ id: 'a', values: [3, 4], if_sequence: 2 });
});

it('changes the time to live and the schema of a collection', async () => {
  await vectors.upsert([{ id: 'a', values: [1, 2], metadata: { x: 1 } }]);
  const change = { ttl_seconds: 60, schema: { x: 'integer' } } as const;
  const { ttl_seconds, schema } = await client.collections.update(collectionId, change);
  assert.deepEqual({ ttl_seconds, schema }, change);
  const wrong = client.collections.update(collectionId, { schema: { x: 'string' } });
  await assert.rejects(wrong, { code: 'invalid_metadata' });
});

it('ids may contain any characters', async () => {
  const ids = ['a/b', 'a b', '100%', '%2F', '🐬', 'q?x#y', '...', '"\\', 'ü', 'a+b&c=d;e:f@g'];
  await vectors.upsert(ids.map((id) => ({ id, values: [1, 2] })));
  for (const id of ids) {
    assert.equal((await vectors.get(id)).id, id);
    await vectors.delete(id);
  }
  assert.equal(await vectors.count(), 0);
});

it('float32 values are transported without loss, as numbers and as base64', async () => {
  const values = new Float32Array([0.1, 1e-45]);
  await vectors.upsert([{ id: 'a', values }]);
  assert.deepEqual(Float32Array.from((await vectors.get('a')).values!), values);
  const { matches } = await vectors.query({ vector: values, include_values: 'base64' });
  assert.deepEqual(decodeValues(matches[0]!.values as string), values);
  // A view into a larger buffer, like a row of a matrix.
  const matrix = new Float32Array([9, 9, 1, 2, 9, 9]);
  assert.equal(encodeValues(matrix.subarray(2, 4)), encodeValues(new Float32Array([1, 2])));
  assert.throws(() => decodeValues('AAAA'), RangeError);
});

it('upsertText keeps the spelling of metadata', async () => {
  const metadata = '{ "n": 12345678901234567890, "x": 1.0 }';
  await vectors.upsertText([`{"id": "a", "values": [1, 2], "metadata": ${metadata}}`]);
  const reply = await fetch(`${server.url}/v1/collections/${collectionId}/vectors/a`);
  assert.ok((await reply.text()).includes(metadata));
});

it('the pages of a query form the whole result, in order', async () => {
  const rows = Array.from({ length: 25 }, (_, n) => ({ id: `r${n}`, values: [n, 1] }));
  await vectors.upsert(rows);
  const request = { vector: [1, 0], include_metadata: true, filter: { $not: { x: 1 } } };
  const whole = await vectors.query({ ...request, top_k: 25 });
  const walked: Match[] = [];
  for await (const page of vectors.queryPages({ ...request, limit: 7 })) {
    assert.ok(page.matches.length <= 7);
    walked.push(...page.matches);
    await vectors.upsert([{ id: `late-${walked.length}`, values: [100, 1] }]);
  }
  assert.deepEqual(walked, whole.matches);
  assert.deepEqual(walked[0], { id: 'r24', score: 24, metadata: {} });
});

it('queryAll without bounds returns the whole result', async () => {
  const rows = Array.from({ length: 205 }, (_, n) => ({
    id: `r${n}`,
    values: [n, 1],
    metadata: { half: n % 2, own: n },
  }));
  await vectors.upsert(rows);
  const idsOf = async (request: object) => {
    const ids: string[] = [];
    for await (const { id } of vectors.queryAll({ vector: [1, 0], ...request })) ids.push(id);
    return ids;
  };
  const nearest = rows.map(({ id }) => id).reverse();
  assert.deepEqual(await idsOf({}), nearest);
  assert.deepEqual(
    await idsOf({ filter: { half: 1 }, offset: 2 }),
    nearest.filter((_, at) => at % 2).slice(2),
  );
  assert.deepEqual(await idsOf({ top_k: 120 }), nearest.slice(0, 120));
  assert.deepEqual(await idsOf({ score_threshold: 100 }), nearest.slice(0, 105));
  assert.deepEqual(await idsOf({ group_by: 'own' }), nearest);
  assert.equal((await idsOf({ group_by: 'half', group_size: 200 })).length, 205);
});

it('iteration stops when the consumer leaves the loop or the signal aborts', async () => {
  await vectors.upsert(Array.from({ length: 9 }, (_, n) => ({ id: `r${n}`, values: [n, 1] })));
  const found: string[] = [];
  for await (const { id } of vectors.queryAll({ vector: [1, 0], limit: 2 })) {
    if (found.push(id) === 5) break;
  }
  assert.deepEqual(found, ['r8', 'r7', 'r6', 'r5', 'r4']);
  const controller = new AbortController();
  const { signal } = controller;
  const walking = (async () => {
    for await (const { id } of vectors.listAll({ limit: 2 }, { signal })) {
      if (id === 'r3') controller.abort(new Error('enough'));
      assert.notEqual(id, 'r4');
    }
  })();
  await assert.rejects(walking, { message: 'enough' });
});

it('values are returned as Float32Array on request', async () => {
  const values = new Float32Array([0.1, 1e-45]);
  await vectors.upsert(['a', 'b', 'c'].map((id) => ({ id, values })));
  const asked = { include_values: 'float32' } as const;
  const one: Float32Array = (await vectors.get('a', asked)).values!;
  const several: Float32Array = (await vectors.fetch(['a'], asked)).vectors[0]!.values!;
  assert.deepEqual([one, several], [values, values]);
  for await (const listed of vectors.listAll({ ...asked, limit: 1 })) {
    assert.deepEqual(listed.values, values);
  }
  let matchCount = 0;
  for await (const match of vectors.queryAll({ vector: values, limit: 1, ...asked })) {
    const found: Float32Array = match.values!;
    assert.deepEqual(found, values);
    matchCount++;
  }
  assert.equal(matchCount, 3);
  const { matches } = await vectors.query({ vector: values });
  assert.equal(matches[0]!.values, undefined);
});

it('probes, metrics and the OpenAPI document are available', async () => {
  assert.deepEqual(await client.service.live(), { status: 'live' });
  assert.equal((await client.service.ready()).status, 'ready');
  assert.equal((await client.service.info()).openapi, 'openapi.json');
  assert.match(await client.service.metrics(), /^# HELP /m);
  assert.equal((await client.service.openApi()).openapi, '3.1.0');
});

it('says who the caller is', async () => {
  const { kind, credentials_required, backups_configured, key } = await client.principal();
  assert.deepEqual([kind, credentials_required, key], ['anonymous', false, null]);
  // The server of these tests has no directory for backups.
  assert.equal(backups_configured, false);
});

it('segments of a collection are listed one at a time', async () => {
  await client.collections.create({ id: 'segmented', dimension: 2 });
  await client.collection('segmented').upsert([{ id: 'a', values: [1, 2] }]);
  const found: unknown[] = [];
  for await (const { state, vector_count } of client.collections.allSegments('segmented')) {
    found.push([state, vector_count]);
  }
  assert.deepEqual(found, [['active', 1]]);
  await client.collections.delete('segmented');
});

it('audit events are listed page by page', async () => {
  await client.collections.create({ id: 'audited', dimension: 2 });
  await client.collections.delete('audited');
  const found: string[] = [];
  for await (const { operation } of client.audit.all({ target: 'audited', limit: 1 })) {
    found.push(operation);
  }
  assert.deepEqual(found, ['collection.delete', 'collection.create']);
});

it('a server without a backup directory rejects backups', async () => {
  await assert.rejects(client.backups.create(), { code: 'backups_not_configured' });
  await assert.rejects(client.backups.list(), { code: 'backups_not_configured' });
});

it('the default collection is used without an id', async () => {
  await assert.rejects(client.defaultCollection.query({ vector: [1, 2] }), {
    code: 'collection_required',
  });
  const other = await createService({ defaultCollection: 'docs' });
  try {
    const baseUrl = `http://127.0.0.1:${await listen(other)}`;
    const { collections, collection, defaultCollection } = createClient({ baseUrl });
    await collections.create({ id: 'docs', dimension: 2, metric: 'dot' });
    const put = await defaultCollection.put({ id: 'a', values: new Float32Array([1, 2]) });
    assert.deepEqual([put.collection, put.created], ['docs', true]);
    await collection('docs').upsert([{ id: 'b', values: [3, 4] }]);
    const asked = { include_values: 'float32' } as const;
    const listed = await defaultCollection.list({ limit: 1, ...asked });
    assert.deepEqual(listed.vectors[0]!.values, new Float32Array([1, 2]));
    const found: string[] = [];
    for await (const page of defaultCollection.queryPages({ vector: [1, 0], limit: 1 })) {
      found.push(...idsOf(page.matches));
    }
    assert.deepEqual(found, ['b', 'a']);
    const { matches } = await defaultCollection.query({ id: 'a' });
    assert.deepEqual(idsOf(matches), ['b']);
  } finally {
    await other.close();
  }
});

it('the pages of a list contain all vectors in insertion order', async () => {
  const rows = Array.from({ length: 9 }, (_, n) => ({
    id: `r${n}`,
    values: [n, 1],
    metadata: { even: n % 2 === 0 },
  }));
  await vectors.upsert(rows);
  const found: string[] = [];
  for await (const page of vectors.listPages({ limit: 2, filter: { even: true } })) {
    found.push(...idsOf(page.vectors));
  }
  assert.deepEqual(found, ['r0', 'r2', 'r4', 'r6', 'r8']);
});

it('returns the limits of the server', async () => {
  assert.equal((await client.limits()).page_limit_max, 1_000);
});

it('an error carries the pointers of the invalid members', async () => {
  const writing = vectors.upsert([
    { id: 'a', values: [1, 2] },
    { id: 'b', values: [1] },
  ]);
  await assert.rejects(writing, (error: { items: { pointer: string }[]; requestId: string }) => {
    assert.deepEqual(
      error.items.map((item) => item.pointer),
      ['/vectors/1/values'],
    );
    assert.ok(error.requestId.length > 0);
    return true;
  });
  assert.equal(await vectors.count(), 0);
});

it('with exactIntegers, integers beyond 2^53 in metadata, facets, stats and groups keep all digits', async () => {
  const post = 1768907725507217523n;
  const exact = createClient({ baseUrl: server.url, exactIntegers: true }).collection(collectionId);
  // The shortest digits of this float32 form an integer that float64 cannot represent.
  const large = Math.fround(2 ** 63);
  const metadata = { post, posts: [post, 2n ** 64n - 1n, 5] };
  await exact.upsert([{ id: 'a', values: [large, 1], metadata }]);

  const seen: unknown[] = [(await exact.get('a')).metadata];
  for await (const row of exact.listAll()) seen.push(row.metadata);
  for await (const row of exact.exportAll()) {
    seen.push(row.metadata);
    assert.deepEqual(row.values, [large, 1]);
  }
  for await (const { matches } of exact.join({
    topK: 1,
    excludeSelf: false,
    includeMetadata: true,
  })) {
    seen.push(matches[0]!.metadata);
  }
  const query = { vector: [large, 1], include_metadata: true, include_values: true };
  const [match] = (await exact.query({ ...query, group_by: 'post' })).matches;
  assert.deepEqual(match!.values, [large, 1]);
  assert.equal(match!.group, post);
  seen.push(match!.metadata);
  assert.deepEqual(seen, Array(5).fill(metadata));

  const { facets, stats } = await exact.aggregate({
    facets: [{ path: 'post' }],
    stats: [{ path: 'post' }],
  });
  assert.equal(facets![0]!.values[0]!.value, post);
  assert.equal(stats![0]!.max, post);
  const { paths } = await exact.schema();
  assert.equal(paths.find(({ path }) => path === 'post')!.min, post);

  // The declared types say number.
  assert.equal((await vectors.get('a')).metadata.post, Number(post));
});
