// `sagitta audit` against a real server.

import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { createClient } from '@sagitta/client';
import { startScriptedServer } from '../support/scripted-server.js';
import { emptyServer } from '../support/shared-server.js';
import { type CommandResult, run } from './command.js';

let url: string;
/** A time after the events of other tests on the server. */
let startedAt: string;
before(async () => {
  url = await emptyServer();
  await setTimeout(2);
  startedAt = new Date().toISOString();
  const { collections } = createClient({ baseUrl: url });
  for (const id of ['a', 'b']) await collections.create({ id, dimension: 2 });
  await assert.rejects(collections.delete('none'));
  await collections.delete('a');
});

const audit = (...args: readonly string[]): Promise<CommandResult> =>
  run(['audit', ...args], { env: { SAGITTA_URL: url } });

async function linesOf(...args: readonly string[]): Promise<string[]> {
  const since = args.includes('--since') ? [] : ['--since', startedAt];
  const { code, stdout, stderr } = await audit(...since, ...args);
  assert.deepEqual([code, stderr], [0, '']);
  return stdout.trimEnd().split('\n');
}

it('lists events, newest first', async () => {
  const [title, ...lines] = await linesOf();
  assert.match(title!, /^time +operation +target +outcome +principal +client$/);
  assert.equal(lines.length, 4);
  assert.match(lines[0]!, /^20\S+ +collection\.delete +a +succeeded +anonymous +127\.0\.0\.1$/);
  assert.match(lines[1]!, /collection\.delete +none +refused \(404\)/);
});

it('names the node that forwarded a request', async () => {
  const event = {
    sequence: 1,
    time: '2026-01-31T12:00:00.000Z',
    operation: 'collection.delete',
    outcome: 'succeeded',
    principal: 'root',
    client: '192.0.2.7',
    via: 'node-2',
    target: 'a',
    status: 200,
    request_id: 'r',
    unlogged_count: 0,
  };
  const server = await startScriptedServer([{ body: { events: [event], has_more: false } }]);
  const { stdout } = await run(['audit'], { env: { SAGITTA_URL: server.url } });
  await server.close();
  assert.match(stdout, / root +192\.0\.2\.7 via node-2\n$/);
});

it('selects events, and prints them as JSON', async () => {
  const told = async (...args: readonly string[]) =>
    (await linesOf(...args, '--json')).map((line) => {
      const { operation, target } = JSON.parse(line);
      return `${operation} ${target}`;
    });
  const created = ['collection.create b', 'collection.create a'];
  assert.deepEqual(await told('--operation', 'collection.create'), created);
  assert.deepEqual(await told('--outcome', 'refused'), ['collection.delete none']);
  assert.deepEqual(await told('--target', 'a', '--count', '1'), ['collection.delete a']);
  assert.equal((await told('--principal', 'anonymous')).length, 4);
  assert.deepEqual(await linesOf('--since', '2d', '--until', '1d'), ['No events.']);
  assert.deepEqual(await linesOf('--since', '2100-01-01'), ['No events.']);
});

it('reports invalid options with what was expected', async () => {
  for (const [args, message] of [
    [['--since', 'yesterday'], /--since: expected a duration such as 90d, or a time/],
    [['--since', '1960-01-01'], /--since: expected a time since 1970/],
    [['--outcome', 'ok'], /Allowed choices are succeeded, refused, failed/],
    [['--operation', 'drop'], /operation/],
  ] as const) {
    const { code, stderr } = await audit(...args);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  }
});
