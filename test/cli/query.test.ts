// `sagitta query` and `sagitta aggregate` against a real server: their options and their output.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createClient, encodeValues } from '@sagitta/client';
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

async function stdoutOf(args: readonly string[], options?: CommandOptions): Promise<string> {
  const { code, stdout, stderr } = await sagitta(args, options);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  return stdout;
}

describe('the target of a query', () => {
  /** The id of the best match for the vector. */
  const best = async (vector: string, input = '') => {
    const args = ['query', 'points', '--vector', vector, '-k', '1', '--json'];
    const reply = JSON.parse(await stdoutOf(args, { input })) as { matches: { id: string }[] };
    return reply.matches[0]?.id;
  };
  const base64 = encodeValues(new Float32Array([1, 0]));

  for (const [spelling, vector] of [
    ['a JSON array', '[1,0]'],
    ['numbers with commas', '1,0'],
    ['numbers with commas and spaces', ' 1e0 , -.0'],
    ['numbers with spaces', '1 0'],
    ['base64', base64],
    ['base64 in quotes', `"${base64}"`],
  ] as const) {
    it(`--vector takes ${spelling}`, async () => {
      assert.equal(await best(vector), 'p11');
    });
  }

  it('--vector refuses two kinds of separators, which may have decimal commas', async () => {
    const { code, stderr } = await sagitta(['query', 'points', '--vector', '0,5 1,5']);
    assert.equal(code, 2);
    assert.match(stderr, /--vector: found "," and " " between the values, expected one separator/);
  });

  it('--vector @file reads the vector from a file', async () => {
    const path = join(folder.path, 'vector.json');
    await writeFile(path, '[1, 0]\n');
    assert.equal(await best(`@${path}`), 'p11');
  });

  for (const [spelling, input] of [
    ['a JSON array', '[1,0]\n'],
    ['a number in each line', '1\n0\n'],
    ['base64', `${base64}\n`],
  ] as const) {
    it(`--vector - reads ${spelling} from stdin`, async () => {
      assert.equal(await best('-', input), 'p11');
    });
  }

  it('--id searches with a stored vector, under a filter and by another metric', async () => {
    const filter = join(folder.path, 'filter.json');
    await writeFile(filter, '{"even": true}');
    const args = [
      'query',
      'points',
      '--id',
      'p6',
      '--filter',
      `@${filter}`,
      '--metric',
      'euclidean',
    ];
    assert.equal(
      await stdoutOf([...args, '-k', '2', '--fields', 'even']),
      '#   score  distance  id  even\n1  0.3333    2.0000  p4  true\n2  0.3333    2.0000  p8  true\n',
    );
  });

  it('--text searches by words in a collection that was created with text', async () => {
    const create = [
      'collections',
      'create',
      'notes',
      '--dimension',
      '2',
      '--text-fields',
      'name,body',
    ];
    const record = JSON.parse(await stdoutOf([...create, '--text-language', 'english', '--json']));
    assert.deepEqual(record.text.fields, ['name', 'body']);
    await createClient({ baseUrl: url })
      .collection('notes')
      .upsert([
        { id: 'a', values: [1, 0], metadata: { name: 'whales', body: 'in the sea' } },
        { id: 'b', values: [1, 0], metadata: { name: 'a whale' } },
      ]);
    const find = async (...args: string[]) => {
      const reply = JSON.parse(await stdoutOf(['query', 'notes', '--json', ...args]));
      return reply.matches.map(({ id }: { id: string }) => id);
    };
    assert.deepEqual(await find('--text', 'whale'), ['b', 'a']);
    assert.deepEqual(await find('--text', 'Whales sea', '--match', 'all'), ['a']);
    const { stderr, code } = await sagitta(['query', 'notes', '--text', 'sea', '--id', 'a']);
    assert.match(
      stderr,
      /expected exactly one of --vector, --id, --text, --sparse, .* and examples .*, found 2/,
    );
    assert.equal(code, 2);
    await stdoutOf(['collections', 'delete', 'notes', '--yes']);
  });

  it('--positive and --negative query by examples, and --mmr diversifies', async () => {
    const idsOf = async (...args: string[]) => {
      const text = await stdoutOf(['query', 'points', '-k', '3', '--json', ...args]);
      return (JSON.parse(text) as { matches: { id: string }[] }).matches.map(({ id }) => id);
    };
    assert.deepEqual(await idsOf('--positive', 'p2,p3', '--strategy', 'sum_scores'), [
      'p11',
      'p10',
      'p9',
    ]);
    assert.deepEqual(await idsOf('--positive', 'p2', '--negative', 'p7'), ['p0', 'p1', 'p3']);
    assert.deepEqual(await idsOf('--id', 'p2', '--mmr', '1', '--mmr-candidates', '5'), [
      'p11',
      'p10',
      'p9',
    ]);
    const strategy = await sagitta(['query', 'points', '--id', 'p1', '--strategy', 'best_score']);
    assert.equal(strategy.code, 2);
    assert.match(strategy.stderr, /--strategy requires --positive or --negative/);
    const candidates = await sagitta(['query', 'points', '--id', 'p1', '--mmr-candidates', '5']);
    assert.match(candidates.stderr, /--mmr-candidates requires --mmr/);
  });
});

describe('the output of a query', () => {
  it('a query prints its matches as a table with their metadata', async () => {
    const table = await stdoutOf(['query', 'points', '--vector', '[1, 0]', '--top-k', '2']);
    assert.equal(
      table,
      '#    score  id   name      even\n' +
        '1  11.0000  p11  point 11  false\n' +
        '2  10.0000  p10  point 10  true\n',
    );
  });

  it('a query prints the metadata fields of --fields, or none', async () => {
    const args = ['query', 'points', '--vector', '[1,0]', '-k', '1'];
    assert.equal(
      await stdoutOf([...args, '--fields', 'name']),
      '#    score  id   name\n1  11.0000  p11  point 11\n',
    );
    assert.equal(await stdoutOf([...args, '--no-metadata']), '#    score  id\n1  11.0000  p11\n');
  });

  it('--limit pages by cursor, and --all fetches every page', async () => {
    const args = ['query', 'points', '--vector', '[1,0]', '--limit', '5', '--no-metadata'];
    const first = await stdoutOf(args);
    const [, shown, cursor] = /\n\n(.*)\n(\S+)\n$/.exec(first)!;
    assert.equal(
      shown,
      'Showing 5 of 12 matches. Use --all for all, or --cursor for the next page:',
    );
    const second = await stdoutOf(['query', 'points', '--cursor', cursor!]);
    assert.match(second, /^#.*\n1 {2}6\.0000 {2}p6\n/);

    const ids = Array.from({ length: 12 }, (_, n) => `p${11 - n}`);
    const lines = (await stdoutOf([...args, '--all', '--json'])).trim().split('\n');
    assert.deepEqual(
      lines.map((line) => (JSON.parse(line) as { id: string }).id),
      ids,
    );
    const table = await stdoutOf([...args, '--all']);
    assert.deepEqual(
      [...table.matchAll(/^ *(\d+) .* (p\d+)$/gm)].map(([, rank, id]) => [rank, id]),
      ids.map((id, at) => [String(at + 1), id]),
    );
  });

  it('--json prints the reply of the server as it is', async () => {
    const args = [
      'query',
      'points',
      '--vector',
      '[1,0]',
      '-k',
      '1',
      '--values',
      '--explain',
      '--json',
    ];
    const reply = JSON.parse(await stdoutOf(args)) as Record<string, unknown>;
    assert.deepEqual(reply.matches, [
      { id: 'p11', score: 11, values: [11, 1], metadata: { name: 'point 11', even: false } },
    ]);
    assert.equal((reply.explain as { rows_scanned: number }).rows_scanned, 12);
  });

  it('numbers in metadata keep their spelling', async () => {
    const { collections, collection } = createClient({ baseUrl: url });
    await collections.create({ id: 'digits', dimension: 1, metric: 'dot' });
    await collection('digits').upsertText([
      '{"id":"a","values":[1],"metadata":{"big":9223372036854775807,"one":1.0,"text":"2.0 \\"3.0"}}',
    ]);
    const args = ['query', 'digits', '--vector', '[1]', '-k', '1'];
    const spelled =
      /\{\s*"big": ?9223372036854775807,\s*"one": ?1\.0,\s*"text": ?"2\.0 \\"3\.0"\s*\}/;
    assert.match(await stdoutOf([...args, '--json']), spelled);
    const lines = await stdoutOf([...args, '--json', '--all']);
    assert.match(lines, spelled);
    assert.equal(lines.split('\n').length, 2);
    assert.match(
      await stdoutOf(args),
      /1\.0000 {2}a {3}9223372036854775807 {2}1\.0 {2}2\.0 "3\.0\n$/,
    );
    await collections.delete('digits');
  });

  it('a query without matches prints a message', async () => {
    const args = ['query', 'points', '--vector', '[1,0]', '--filter', '{"name":"none"}'];
    assert.equal(await stdoutOf(args), 'No matches.\n');
  });

  it('a path that no vector has causes a warning on stderr', async () => {
    const args = ['query', 'points', '--vector', '[1,0]', '--filter', '{"nmae":"p1"}'];
    const { code, stdout, stderr } = await sagitta(args);
    assert.equal(stderr, 'Warning: No vector has metadata at "nmae"; did you mean "name"?\n');
    assert.deepEqual([code, stdout], [0, 'No matches.\n']);
  });

  it('--group-by shows the best matches of each value', async () => {
    const args = ['query', 'points', '--vector', '[1,0]', '--group-by', 'even'];
    assert.equal(
      await stdoutOf([...args, '--group-size', '2', '--no-metadata']),
      '#    score  id   group\n' +
        '1  11.0000  p11  false\n2   9.0000  p9   false\n3  10.0000  p10  true\n4   8.0000  p8   true\n',
    );
    const pages = await stdoutOf([...args, '--limit', '1', '--all', '--json']);
    const groups = pages
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).group);
    assert.deepEqual(groups, [false, true]);
  });
});

it('aggregate counts the values of fields and summarizes numbers', async () => {
  const filter = ['--filter', '{"even": true}'];
  const tables = await stdoutOf(['aggregate', 'points', '--facets', 'even,name', '--limit', '1']);
  assert.equal(
    tables,
    'even   vectors\nfalse        6\n1 of 2 values; 0 vectors have none\n\n' +
      'name     vectors\npoint 0        1\n1 of 12 values; 0 vectors have none\n\n' +
      '12 vectors\n',
  );
  const stats = await stdoutOf(['aggregate', 'points', '--stats', 'name', ...filter]);
  assert.match(stats, /^name\ncount +0\nmissing_count +6\n\n6 vectors\n$/);
  const json = await stdoutOf(['aggregate', 'points', '--facets', 'even', ...filter, '--json']);
  assert.deepEqual(JSON.parse(json).facets, [
    { path: 'even', values: [{ value: true, count: 6 }], distinct_count: 1, missing_count: 0 },
  ]);
  const nothing = await sagitta(['aggregate', 'points']);
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /expected --facets, --stats or both, found neither/);
});
