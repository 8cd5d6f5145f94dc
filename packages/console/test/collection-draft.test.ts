import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CollectionRecord } from '@sagitta/client';
import {
  type CollectionDraft,
  changeOf,
  EMPTY_DRAFT,
  EMPTY_VECTOR,
  findSettingsErrors,
  parseDraft,
  parseVectorDraft,
  readRequest,
  requestOf,
  settingsOf,
  withElementType,
} from '../src/views/collection/collection-draft.js';

const DOCS: CollectionDraft = { ...EMPTY_DRAFT, id: 'docs', dimension: '3' };

function inputOf(draft: Partial<CollectionDraft>) {
  const parsed = parseDraft({ ...DOCS, ...draft }, 16_384);
  assert.equal(parsed.kind, 'valid');
  return parsed.kind === 'valid' ? parsed.input : {};
}

function errorsOf(draft: Partial<CollectionDraft>) {
  const parsed = parseDraft({ ...DOCS, ...draft }, 16_384);
  assert.equal(parsed.kind, 'invalid');
  return parsed.kind === 'invalid' ? parsed.errors : {};
}

const text = (fields: readonly string[], language = '') => ({
  isOn: true,
  fields,
  language,
  rest: {},
});

const endpoint = (name: string, model: string) => ({
  kind: 'endpoint' as const,
  endpoint: name,
  model,
  rest: {},
});

describe('parseDraft', () => {
  test('sends the given fields and leaves out empty ones', () => {
    assert.deepEqual(inputOf({ id: ' docs ', dimension: '384', metric: 'dot' }), {
      id: 'docs',
      dimension: 384,
      metric: 'dot',
    });
  });

  test('sends every field', () => {
    const input = inputOf({
      elementType: 'int8',
      embed: endpoint(' local ', 'small'),
      text: text(['title', ' ', ' body'], 'english'),
      vectors: [
        { ...EMPTY_VECTOR, name: 'image', dimension: '8', elementType: 'float16' },
        { ...EMPTY_VECTOR, name: 'tokens', kind: 'multi', dimension: '4', metric: 'dot' },
        { ...EMPTY_VECTOR, name: 'words', kind: 'sparse' },
        EMPTY_VECTOR,
      ],
      types: [
        { path: 'year', type: 'integer' },
        { path: '', type: 'string' },
      ],
      ttl: '60',
      description: 'Texts',
      labels: [
        { name: 'team', value: 'search' },
        { name: '', value: '' },
      ],
      nodes: '2',
    });
    assert.deepEqual(input, {
      id: 'docs',
      dimension: 3,
      metric: 'cosine',
      element_type: 'int8',
      embed: { endpoint: 'local', model: 'small' },
      text: { fields: ['title', 'body'], language: 'english' },
      vectors: {
        image: { dimension: 8, metric: 'cosine', element_type: 'float16' },
        tokens: { dimension: 4, metric: 'dot', multi: true },
      },
      sparse_vectors: { words: {} },
      schema: { year: 'integer' },
      ttl_seconds: 60,
      description: 'Texts',
      labels: { team: 'search' },
      replication_factor: 2,
    });
  });

  test('sends no dimension with the built-in model, which has its own', () => {
    const embed = { ...EMPTY_DRAFT.embed, kind: 'builtin' as const };
    assert.deepEqual(inputOf({ embed }), { id: 'docs', embed: 'builtin' });
  });

  test('needs no dimension with something else to search', () => {
    assert.deepEqual(inputOf({ dimension: '', text: text(['title']) }), {
      id: 'docs',
      text: { fields: ['title'] },
    });
    assert.match(errorsOf({ dimension: '' }).dimension!, /something else to search/);
  });

  test('says what is wrong, by field', () => {
    assert.match(errorsOf({ id: ' ' }).id!, /name/);
    assert.match(errorsOf({ dimension: '1.5' }).dimension!, /Found 1.5, expected .* 16384/);
    assert.match(errorsOf({ dimension: '20000' }).dimension!, /20000/);
    assert.match(errorsOf({ text: text(['']) }).text!, /metadata path/);
    assert.match(errorsOf({ embed: endpoint('local', '') }).embed!, /model/);
    assert.match(errorsOf({ json: '[1]' }).json!, /JSON object/);
    const vectors = (...rows: object[]) =>
      errorsOf({ vectors: rows.map((row) => ({ ...EMPTY_VECTOR, ...row })) }).vectors!;
    assert.match(vectors({ name: 'a' }), /a has no dimension/);
    assert.match(vectors({ dimension: '3' }), /dimension 3 has no name/);
    assert.match(vectors({ name: 'a', dimension: 'x' }), /a: Found x/);
    assert.match(vectors({ name: 'a', kind: 'sparse' }, { name: 'a', dimension: '1' }), /twice/);
  });

  test('reports all fields at once', () => {
    const labels = [{ name: '', value: 'x' }];
    const errors = errorsOf({ id: '', dimension: 'a', labels, ttl: '1h' });
    assert.deepEqual(Object.keys(errors).sort(), ['dimension', 'id', 'labels', 'ttl']);
  });
});

describe('readRequest', () => {
  test('reads back what a draft sends', () => {
    const draft: CollectionDraft = {
      ...DOCS,
      elementType: 'bit',
      metric: 'jaccard',
      embed: endpoint('local', 'small'),
      text: text(['title'], 'english'),
      vectors: [
        { ...EMPTY_VECTOR, name: 'image', dimension: '8' },
        { ...EMPTY_VECTOR, name: 'words', kind: 'sparse' },
      ],
      types: [{ path: 'year', type: 'integer' }],
      ttl: '60',
      description: 'Texts',
      labels: [{ name: 'team', value: 'search' }],
      nodes: '2',
    };
    assert.deepEqual(readRequest(JSON.stringify(requestOf(draft))), draft);
  });

  test('keeps members without a field, and values that are wrong', () => {
    const request = {
      id: 'docs',
      dimension: 'three',
      metric: 'cosine',
      embed: { endpoint: 'local', model: 'small', sends_dimension: true },
      text: { fields: ['title'], stop_words: ['the'] },
      vectors: { image: { dimension: 8, metric: 'cosine', shape: 1 } },
    };
    const draft = readRequest(JSON.stringify(request));
    assert.ok(typeof draft !== 'string');
    assert.deepEqual(requestOf(draft), request);
  });

  test('says what is wrong with the text', () => {
    assert.match(readRequest('{') as string, /Expected JSON/);
    assert.match(readRequest('[1]') as string, /JSON object/);
    assert.match(readRequest('{"metrics": 1}') as string, /Found the member metrics/);
    assert.match(readRequest('{"vectors": [1]}') as string, /object as vectors/);
  });
});

test('bits have metrics of their own', () => {
  assert.deepEqual(withElementType('bit', 'cosine'), { elementType: 'bit', metric: 'hamming' });
  assert.deepEqual(withElementType('bit', 'jaccard'), { elementType: 'bit', metric: 'jaccard' });
  assert.deepEqual(withElementType('int8', 'jaccard'), { elementType: 'int8', metric: 'cosine' });
  assert.deepEqual(withElementType('int8', 'dot'), { elementType: 'int8', metric: 'dot' });
});

describe('the settings of a collection', () => {
  const record = {
    id: 'docs',
    description: null,
    labels: { team: 'search' },
    ttl_seconds: 60,
    schema: { year: 'integer' },
  } as unknown as CollectionRecord;

  test('change only where they were edited', () => {
    const before = settingsOf(record);
    assert.deepEqual(changeOf(before, before), {});
    const after = {
      ...before,
      description: 'Texts',
      ttl: '',
      types: [{ path: 'year', type: 'number' as const }],
    };
    assert.deepEqual(changeOf(before, after), {
      description: 'Texts',
      ttl_seconds: null,
      schema: { year: 'number' },
    });
    assert.deepEqual(changeOf(before, { ...before, types: [], labels: [] }), {
      labels: {},
      schema: null,
    });
  });

  test('include the model, which null removes', () => {
    const none = settingsOf(record);
    const builtin = settingsOf({ ...record, embed: 'builtin' } as unknown as CollectionRecord);
    assert.deepEqual(changeOf(none, builtin), { embed: 'builtin' });
    assert.deepEqual(changeOf(builtin, none), { embed: null });
    // As records name it, with its version.
    const embed = { endpoint: 'builtin', model: 'english-1' };
    const versioned = settingsOf({ ...record, embed } as unknown as CollectionRecord);
    assert.equal(versioned.embed.kind, 'builtin');
    assert.deepEqual(changeOf(versioned, versioned), {});
    assert.deepEqual(changeOf(none, versioned), { embed });
  });

  test('are checked', () => {
    const draft = settingsOf(record);
    assert.deepEqual(findSettingsErrors(draft), {});
    const labels = [
      { name: 'a', value: '1' },
      { name: 'a', value: '2' },
    ];
    assert.match(findSettingsErrors({ ...draft, labels }).labels!, /a appears twice/);
    const types = [...draft.types, ...draft.types];
    assert.match(findSettingsErrors({ ...draft, types }).types!, /year appears twice/);
    for (const ttl of ['0', '1h', '1.5']) {
      assert.match(findSettingsErrors({ ...draft, ttl }).ttl!, /Found .* whole number/);
    }
  });
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
