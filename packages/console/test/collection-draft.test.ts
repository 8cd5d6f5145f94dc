import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type CollectionDraft,
  EMPTY_DRAFT,
  EMPTY_VECTOR,
  parseDraft,
  parseLabels,
  parseTtl,
  parseVectorDraft,
} from '../src/views/collection/collection-draft.js';

function parse(draft: Partial<CollectionDraft>) {
  return parseDraft({ ...EMPTY_DRAFT, id: 'docs', ...draft }, 16_384);
}

function errorsOf(draft: Partial<CollectionDraft>) {
  const parsed = parse(draft);
  assert.equal(parsed.kind, 'invalid');
  return parsed.kind === 'invalid' ? parsed.errors : {};
}

describe('parseDraft', () => {
  test('sends the given fields and leaves out empty ones', () => {
    assert.deepEqual(parse({ id: ' docs ', dimension: '384', metric: 'dot' }), {
      kind: 'valid',
      input: { id: 'docs', dimension: 384, metric: 'dot' },
    });
  });

  test('sends no metric without a dimension, and the members of the JSON', () => {
    assert.deepEqual(parse({ advanced: '{"text": {"fields": ["title"]}}' }), {
      kind: 'valid',
      input: { id: 'docs', text: { fields: ['title'] } },
    });
  });

  test('says what is wrong, by field', () => {
    assert.match(errorsOf({ id: ' ' }).id!, /name/);
    assert.match(errorsOf({ dimension: '1.5' }).dimension!, /Found 1.5, expected .* 16384/);
    assert.match(errorsOf({ dimension: '20000' }).dimension!, /20000/);
    assert.match(errorsOf({ advanced: '[1]' }).advanced!, /JSON object/);
    assert.match(errorsOf({ advanced: '{"metrics": 1}' }).advanced!, /metrics/);
    assert.match(errorsOf({ advanced: '{' }).advanced!, /Expected JSON/);
  });

  test('reports all fields at once', () => {
    const labels = [{ name: '', value: 'x' }];
    assert.deepEqual(Object.keys(errorsOf({ id: '', dimension: 'a', labels })), [
      'id',
      'dimension',
      'labels',
    ]);
  });
});

test('empty labels are ignored, and names must be unique', () => {
  assert.deepEqual(
    parseLabels([
      { name: 'team', value: 'search' },
      { name: '', value: '' },
    ]),
    { team: 'search' },
  );
  const twice = [
    { name: 'a', value: '1' },
    { name: 'a', value: '2' },
  ];
  assert.match(parseLabels(twice) as string, /a appears twice/);
});

test('an expiry is a whole number of seconds, or none', () => {
  assert.equal(parseTtl('3600'), 3_600);
  assert.equal(parseTtl(' '), null);
  assert.match(parseTtl('0') as string, /Found 0/);
  assert.match(parseTtl('1h') as string, /Found 1h/);
});

describe('parseVectorDraft', () => {
  test('returns the change that adds a vector of the given kind', () => {
    const draft = { ...EMPTY_VECTOR, name: ' summary ', dimension: '384', metric: 'dot' as const };
    const shape = { dimension: 384, metric: 'dot' };
    assert.deepEqual(parseVectorDraft(draft), { vectors: { summary: shape } });
    const multi = parseVectorDraft({ ...draft, kind: 'multi' });
    assert.deepEqual(multi, { vectors: { summary: { ...shape, multi: true } } });
    const sparse = parseVectorDraft({ ...draft, kind: 'sparse', dimension: '' });
    assert.deepEqual(sparse, { sparse_vectors: { summary: {} } });
  });

  test('returns null while the name or the dimension is missing', () => {
    assert.equal(parseVectorDraft({ ...EMPTY_VECTOR, dimension: '3' }), null);
    assert.equal(parseVectorDraft({ ...EMPTY_VECTOR, name: 'a' }), null);
    assert.equal(parseVectorDraft({ ...EMPTY_VECTOR, name: 'a', dimension: '1.5' }), null);
  });
});
