// `sagitta collections`, `sagitta aliases` and `sagitta update` against a real server.

import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { createClient } from '@sagitta/client';
import { serverWithPoints } from '../support/shared-server.js';
import { type CommandResult, run } from './command.js';

let url: string;
before(async () => {
  url = await serverWithPoints();
});

const sagitta = (...args: readonly string[]): Promise<CommandResult> =>
  run(args, { env: { SAGITTA_URL: url } });

async function stdoutOf(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await sagitta(...args);
  assert.deepEqual([code, stderr], [0, '']);
  return stdout;
}

it('collections are created, shown, listed and deleted', async () => {
  const create = ['collections', 'create', 'made', '--dimension', '3', '--metric', 'euclidean'];
  const made = JSON.parse(
    await stdoutOf(...create, '--description', 'of a test', '--label', 'a=b=c', '--json'),
  ) as Record<string, unknown>;
  assert.equal(made.metric, 'euclidean');
  assert.deepEqual(made.labels, { a: 'b=c' });
  assert.match(await stdoutOf('collections', 'show', 'made'), /^description {3}of a test$/m);
  assert.match(
    await stdoutOf('collections', 'list'),
    /^id +vectors .*\nmade +0 +3 {2}euclidean .*of a test\npoints +12 +2 {2}dot /,
  );
  const refused = await sagitta('collections', 'delete', 'made');
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /pass --yes to delete without confirmation/);
  assert.equal(
    await stdoutOf('collections', 'delete', 'made', '--yes'),
    'Deleted collection made with 0 vectors.\n',
  );
  const listed = JSON.parse(await stdoutOf('collections', 'list', '--json')) as { id: string }[];
  assert.deepEqual(
    listed.map((record) => record.id),
    ['points'],
  );
});

it('clones and renames a collection', async () => {
  const clone = JSON.parse(await stdoutOf('collections', 'clone', 'points', 'copy', '--json'));
  assert.deepEqual([clone.id, clone.vector_count], ['copy', 12]);
  assert.match(await stdoutOf('collections', 'rename', 'copy', 'copy-2'), /^id +copy-2\n/);
  const { code, stderr } = await sagitta('collections', 'show', 'copy');
  assert.notEqual(code, 0);
  assert.match(stderr, /no collection with the id "copy"/);
});

it('creates a collection with a time to live and a schema', async () => {
  const options = ['--dimension', '2', '--ttl', '30d', '--schema', '{"year": "integer"}', '--json'];
  const { ttl_seconds, schema } = JSON.parse(
    await stdoutOf('collections', 'create', 'c', ...options),
  );
  assert.deepEqual([ttl_seconds, schema], [30 * 86_400, { year: 'integer' }]);
});

it('creates a collection with named vectors or text instead of a dimension', async () => {
  const vectors = ['--vectors', '{"title": {"dimension": 2}}'];
  const posters = JSON.parse(
    await stdoutOf('collections', 'create', 'posters', ...vectors, '--json'),
  );
  assert.deepEqual([posters.dimension, Object.keys(posters.vectors)], [undefined, ['title']]);
  await stdoutOf('collections', 'create', 'lyrics', '--text-fields', 'title');
  assert.match(await stdoutOf('collections', 'list'), /\nlyrics +0 +ready/);
  const { code, stderr } = await sagitta('collections', 'create', 'nothing');
  assert.equal(code, 1);
  assert.match(stderr, /dimension.*since there are no vectors/);
});

it('adds named vectors to a collection and drops them', async () => {
  await stdoutOf('collections', 'create', 'growing', '--dimension', '2');
  const update = ['collections', 'update', 'growing'];
  const added = ['--add-vector', 'summary:4:dot', '--add-vector', 'tokens:2:cosine:multi'];
  const sparse = ['--add-sparse-vector', 'words,terms', '--description', 'grows'];
  const { description, vectors, sparse_vectors } = JSON.parse(
    await stdoutOf(...update, ...added, ...sparse, '--json'),
  );
  assert.deepEqual([description, sparse_vectors], ['grows', { words: {}, terms: {} }]);
  assert.deepEqual(vectors, {
    summary: { dimension: 4, metric: 'dot' },
    tokens: { dimension: 2, metric: 'cosine', multi: true },
  });
  const shown = await stdoutOf('collections', 'show', 'growing');
  assert.match(shown, /^sparse_vectors {2}\{"words":\{\},"terms":\{\}\}$/m);
  const drop = ['--drop-vector', 'summary', '--drop-sparse-vector', 'words,terms'];
  const refused = await sagitta(...update, ...drop);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /pass --yes to drop without confirmation/);
  const left = JSON.parse(await stdoutOf(...update, ...drop, '--yes', '--json'));
  assert.deepEqual([Object.keys(left.vectors), left.sparse_vectors], [['tokens'], undefined]);
  for (const [args, message] of [
    [[], /expected an option with a change/],
    [['--add-vector', 'x'], /expected name:dimension\[:metric\[:multi\]\] such as .*; found "x"/],
    [
      ['--add-vector', 'x:2:l2'],
      /with a metric of cosine, dot, euclidean, jaccard, hamming; found "x:2:l2"/,
    ],
    [['--add-vector', 'tokens:3', '--drop-vector', 'tokens'], /tokens: found in options that add/],
    [['--drop-vector', 'other', '--yes'], /no such vector to drop; expected tokens/],
  ] as const) {
    const { code, stderr } = await sagitta(...update, ...args);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  }
});

it('sets, lists and deletes aliases', async () => {
  assert.equal(await stdoutOf('aliases', 'list'), 'No aliases.\n');
  await stdoutOf('aliases', 'set', 'live=points', 'test=points');
  const listed = JSON.parse(await stdoutOf('aliases', 'list', '--json'));
  assert.deepEqual(
    listed.map(({ name, collection }: { name: string; collection: string }) => [name, collection]),
    [
      ['live', 'points'],
      ['test', 'points'],
    ],
  );
  assert.match(await stdoutOf('aliases', 'list'), /^alias +collection +updated\nlive +points +20/);
  const refused = await sagitta('collections', 'delete', 'points', '--yes');
  assert.match(refused.stderr, /has the aliases "live", "test"/);
  assert.equal(await stdoutOf('aliases', 'delete', 'live'), 'Deleted alias live.\n');
  for (const [pair, message] of [
    ['live', /expected name=collection, found "live"/],
    ['live=none', /no collection with the id "none"/],
  ] as const) {
    const { code, stderr } = await sagitta('aliases', 'set', pair);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  }
});

it('updates metadata by filter in steps, and a repetition changes nothing', async () => {
  const change = ['--filter', '{"even": true}', '--patch', '{"half": true, "even": null}'];
  const command = ['update', 'points', ...change, '--batch', '4'];
  assert.equal(await stdoutOf(...command), 'Updated 6 vectors.\n');
  assert.equal(await stdoutOf(...command), 'Updated 0 vectors.\n');
  const misspelt = ['--filter', '{"evne": true}', '--patch', '{"half": true}'];
  const { code: warned, stdout, stderr: warning } = await sagitta('update', 'points', ...misspelt);
  assert.deepEqual([warned, stdout], [0, 'Updated 0 vectors.\n']);
  assert.equal(warning, 'Warning: No vector has metadata at "evne"; did you mean "even"?\n');
  const replace = ['update', 'points', '--all', '--replace', '{"x": 1}'];
  assert.equal(await stdoutOf(...replace), 'Updated 12 vectors.\n');
  const count = await createClient({ baseUrl: url })
    .collection('points')
    .count({ filter: { x: 1 } });
  assert.equal(count, 12);
  for (const [args, message] of [
    [['--all', '--filter', '{}', '--patch', '{}'], /one of --filter and --all/],
    [['--patch', '{}'], /one of --filter and --all/],
    [['--all'], /one of --patch and --replace/],
  ] as const) {
    const { code, stderr } = await sagitta('update', 'points', ...args);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  }
});

it('collections schema shows the metadata fields with types and ranges', async () => {
  const { collections, collection } = createClient({ baseUrl: url });
  await collections.create({ id: 'varied', dimension: 1 });
  await collection('varied').upsert([
    { id: 'a', values: [1], metadata: { price: 3, tags: ['x', 1], of: { lang: 'en' } } },
    { id: 'b', values: [1], metadata: { price: null, tags: [] } },
  ]);
  assert.equal(
    await stdoutOf('collections', 'schema', 'varied'),
    'path     vectors  types                      distinct  min  max\n' +
      'of             1  object                            0\n' +
      'of.lang        1  string                            1\n' +
      'price          2  null, number                      1    3    3\n' +
      'tags           2  array of number or string         2    1    1\n',
  );
});
