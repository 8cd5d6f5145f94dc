// The output of `sagitta export` and `sagitta join`, against a real server.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { createClient } from '@sagitta/client';
import { serverWithPoints } from '../support/shared-server.js';
import { type CommandOptions, type CommandResult, makeFolder, run } from './command.js';

let url: string;
let folder: Awaited<ReturnType<typeof makeFolder>>;

before(async () => {
  url = await serverWithPoints();
  folder = await makeFolder();
});
after(() => folder.remove());

function sagitta(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return run(args, { ...options, env: { SAGITTA_URL: url, ...options.env } });
}

it('export --columns typed gives each metadata path a column of its type', async () => {
  const { collections, collection } = createClient({ baseUrl: url });
  await collections.create({ id: 'typed', dimension: 2, metric: 'dot' });
  await collection('typed').upsertText([
    '{"id":"a","values":[1,0],"metadata":{"i":9007199254740993,"t":["x",null],"n":0.10000000149011612,"s":"x \\"y\\"","b":true,"l":[1,"a"],"o":{"p":1,"q":{"r":"z"}},"m":1,"id":"in"}}',
    '{"id":"b","values":[0,1],"metadata":{"n":null,"b":false,"m":"text","o":{"p":2}}}',
    '{"id":"c","values":[0.5,-0],"metadata":{"n":-0.0,"l":[-0.0]}}',
  ]);
  const typed = ['export', 'typed', '--columns', 'typed'];
  const { stdout } = await sagitta([...typed, '--format', 'csv']);
  assert.deepEqual(stdout.trimEnd().split('\n'), [
    'id,values,b,i,metadata.id,l,m,n,o.p,o.q.r,s,t',
    '"a","[1,0]",true,9007199254740993,"in","[1,""a""]","1",0.10000000149011612,1,"z","x ""y""","[""x"",null]"',
    '"b","[0,1]",false,,,,"""text""",,2,,,',
    '"c","[0.5,-0]",,,,"[-0.0]",,-0,,,,',
  ]);
  // Metadata that occurs only in rows outside the filter gets no columns.
  const some = await sagitta([...typed, '--format', 'csv', '--filter', '{"o.p":2}', '--no-values']);
  assert.equal(some.stdout, 'id,b,m,n,o.p\n"b",false,"text",,2\n');
  for (const extension of ['parquet', 'arrow', 'arrows']) {
    const path = join(folder.path, `typed.${extension}`);
    assert.equal((await sagitta([...typed, '-o', path])).code, 0);
    const again = ['import', path, '-c', `typed-${extension}`];
    assert.equal((await sagitta(again, { env: { XDG_STATE_HOME: folder.path } })).code, 0);
    const { metadata } = await collection(`typed-${extension}`).get('a');
    const expected = { 'metadata.id': 'in', l: '[1,"a"]', m: '1', 'o.p': 1, 'o.q.r': 'z' };
    // The client reads numbers as float64.
    const i = 9007199254740992;
    assert.deepEqual(metadata, {
      i,
      t: ['x', null],
      n: 0.10000000149011612,
      s: 'x "y"',
      b: true,
      ...expected,
    });
    await collections.delete(`typed-${extension}`);
  }
  for (const [args, message] of [
    [[], /--columns typed does not apply to ndjson; expected csv, arrow/],
    [['--format', 'csv', '--no-metadata'], /cannot be combined with --no-metadata/],
  ] as const) {
    const { stderr, code } = await sagitta([...typed, ...args]);
    assert.equal(code, 2);
    assert.match(stderr, message);
  }
  await collections.delete('typed');
});

it('join --unordered-pairs reports each pair once, and join shows its progress', async () => {
  const pairs = ['join', 'points', '--score-threshold', '-1e9', '--format', 'csv'];
  const { stdout, stderr } = await sagitta([...pairs, '--unordered-pairs']);
  assert.equal(stdout.trimEnd().split('\n').length, 1 + (12 * 11) / 2);
  assert.match(stderr, /^points: 100 % {2}12 rows/m);
  assert.equal((await sagitta(pairs)).stdout.trimEnd().split('\n').length, 1 + 12 * 11);
});

it('join --sample finds the nearest of all rows, and with --with-sample those of a sample', async () => {
  const ask = ['join', 'points', '-k', '1', '--sample', '4', '--seed', '1'];
  const matches = async (...args: string[]) =>
    (await sagitta([...ask, ...args])).stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; matches: { id: string }[] });
  const rows = await matches();
  assert.equal(rows.length, 4);
  // p11 has the greatest product with every point.
  for (const {
    id,
    matches: [best],
  } of rows)
    assert.equal(best!.id, id === 'p11' ? 'p10' : 'p11');
  const sampled = await matches('--with-sample', '4', '--include-self');
  const ids = rows.map(({ id }) => id);
  const greatest = ids.toSorted((a, b) => Number(b.slice(1)) - Number(a.slice(1)))[0];
  assert.deepEqual(
    sampled.map(({ id, matches: [best] }) => [id, best!.id]),
    ids.map((id) => [id, greatest]),
  );
});

it('CSV of an export or a join without rows has a header line', async () => {
  const none = ['--filter', '{"name":"none"}', '--format', 'csv'];
  assert.equal(await exported(none), 'id,values,metadata\n');
  assert.equal(await exported([...none, '--no-values']), 'id,metadata\n');
  const { stdout } = await sagitta(['join', 'points', '-k', '1', ...none]);
  assert.equal(stdout, 'id,rank,match_id,score\n');
});

async function exported(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await sagitta(['export', 'points', ...args]);
  assert.equal(code, 0, stderr);
  return stdout;
}
