import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectionAt, matching, viewCommands } from '../src/shell/palette-commands.js';

const command = (label: string) => ({ label, note: '', run: () => undefined });
const labels = (commands: readonly { label: string }[]) => commands.map(({ label }) => label);

test('the palette finds commands that contain every word, in any order and case', () => {
  const commands = ['beta: Query', 'beta: Schema', 'alpha: Query'].map(command);
  assert.deepEqual(labels(matching(commands, 'QUE beta')), ['beta: Query']);
  assert.deepEqual(labels(matching(commands, ' ')), labels(commands));
  assert.deepEqual(matching(commands, 'gamma'), []);
});

test('the palette shows commands that begin with the text before others, otherwise in their order', () => {
  const commands = ['New query', 'beta: Query', 'Query the map', 'Queries'].map(command);
  assert.deepEqual(labels(matching(commands, 'quer')), [
    'Query the map',
    'Queries',
    'New query',
    'beta: Query',
  ]);
});

test('the palette knows the collection of an address', () => {
  assert.equal(collectionAt('/collections/a%20b/query/x'), 'a b');
  assert.equal(collectionAt('/collections/a'), 'a');
  assert.equal(collectionAt('/keys'), undefined);
  assert.equal(collectionAt('/collections/%'), undefined);
});

test('the palette opens every view of a collection', () => {
  const opened: string[] = [];
  for (const { run } of viewCommands('docs', (id, view) => opened.push(`${id}/${view}`))) run();
  assert.deepEqual(opened.slice(0, 3), ['docs/schema', 'docs/browse', 'docs/query']);
});
