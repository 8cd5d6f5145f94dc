import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CollectionRecord, FoundPath } from '@sagitta/client';
import { stringifyExactJson } from '../../../src/common/exact-json.js';
import { formatNumber } from '../src/ui/format.js';
import { parseObject } from '../src/views/filter/filter-values.js';
import { LANGUAGES } from '../src/views/query/copy-as.js';
import { mergePatchBetween } from '../src/views/vectors/merge-patch.js';
import {
  findPictureUrl,
  formatValue,
  greyPixels,
  pictureShape,
  pictureUrl,
  previewText,
  previewTitle,
  titlePathOf,
} from '../src/views/vectors/preview.js';
import { stripPath, summarizeValues } from '../src/views/vectors/values-shape.js';

const ORIGIN = 'https://db.example:8484';
const collection = (part: object) => ({ labels: {}, ...part }) as unknown as CollectionRecord;

describe('the picture of a vector', () => {
  test('comes from the same origin or from the metadata itself', () => {
    const shown = (text: string) => pictureUrl(text, ORIGIN);
    assert.equal(shown('/pictures/a.png'), `${ORIGIN}/pictures/a.png`);
    assert.equal(shown(`${ORIGIN}/b.webp?v=2`), `${ORIGIN}/b.webp?v=2`);
    assert.equal(shown('data:image/png;base64,AAAA'), 'data:image/png;base64,AAAA');
  });

  test('is never requested from another host', () => {
    for (const text of [
      'https://elsewhere.example/a.png',
      '//elsewhere.example/a.png',
      '/\\elsewhere.example/a.png',
      `${ORIGIN}.elsewhere.example/a.png`,
      'data:image/svg+xml;base64,AAAA',
      'data:text/html,<b>a.png',
      'javascript:alert(1)//a.png',
      'a.png',
      '/notes.txt',
    ]) {
      assert.equal(pictureUrl(text, ORIGIN), undefined, text);
    }
    assert.equal(
      findPictureUrl({ a: 'x', b: { c: ['https://e.example/a.png', '/a.gif'] } }, ORIGIN),
      `${ORIGIN}/a.gif`,
    );
  });

  test('is made from its values if the collection says so', () => {
    const labelled = (preview: string) => collection({ labels: { preview }, dimension: 64 });
    assert.deepEqual(pictureShape(labelled('values:8x8')), { width: 8, height: 8 });
    assert.equal(pictureShape(labelled('values:8x9')), undefined);
    assert.equal(pictureShape(labelled('8x8')), undefined);
    assert.deepEqual(
      [...greyPixels([-1, 0, 1])].filter((_, i) => i % 4 === 0),
      [0, 128, 255],
    );
    assert.deepEqual([...greyPixels([3])], [0, 0, 0, 255]);
  });
});

test('the text of a vector comes from the indexed fields, or is the longest string that reads like prose', () => {
  const metadata = { id: 'x'.repeat(90), title: 'A short title', body: 'A text that is longer' };
  assert.equal(previewText(metadata, collection({})), 'A text that is longer');
  const indexed = collection({ text: { fields: ['title'] } });
  assert.equal(previewText(metadata, indexed), 'A short title');
  assert.equal(previewText({ n: 1 }, collection({})), undefined);
});

test('the text of a vector does not repeat its title', () => {
  const indexed = collection({ text: { fields: ['title', 'body'] } });
  assert.equal(previewText({ title: 'A whale', body: 'A text' }, indexed), 'A text');
});

test('vectors are named by a usual path, or by the shortest path of distinct strings', () => {
  const path = (name: string, distinct_count: number, type: 'string' | 'number' = 'string') =>
    ({
      path: name,
      count: 100,
      distinct_count,
      is_distinct_exact: true,
      types: { null: 0, boolean: 0, number: 0, string: 0, array: 0, object: 0, [type]: 100 },
    }) as FoundPath;
  assert.equal(titlePathOf([path('a', 100), path('label', 10, 'number')]), 'label');
  assert.equal(titlePathOf([path('summary', 100), path('kind', 3), path('city', 95)]), 'city');
  assert.equal(titlePathOf([path('kind', 3), path('n', 100, 'number')]), undefined);
  assert.equal(previewTitle({ a: { b: 'Ulm' }, title: 'x' }, 'a.b'), 'Ulm');
});

test('values in cells take one line', () => {
  assert.equal(formatValue(['a', 'b']), 'a, b');
  assert.equal(formatValue({ a: [1] }), '{"a":[1]}');
  assert.equal(formatValue(undefined), '');
});

test('integers beyond 2^53 are shown with all their digits', () => {
  assert.equal(formatValue(1768907725507217523n), '1768907725507217523');
  assert.equal(formatValue(2 ** 63), '9223372036854775808');
  assert.equal(formatValue(['a', { b: 2n ** 53n + 1n }]), '["a",{"b":9007199254740993}]');
  assert.equal(previewTitle({ title: 1768907725507217523n }), '1768907725507217523');
  assert.equal(previewTitle({ title: 2 ** 63 }), '9223372036854775808');
});

test('a number from metadata keeps all digits if it is an integer', () => {
  const texts = [1768907725507217523n, 2 ** 63, 20260131, 0.123456789, 1e300].map(formatNumber);
  assert.deepEqual(texts, [
    '1768907725507217523',
    '9223372036854775808',
    '20260131',
    '0.123457',
    '1e+300',
  ]);
});

test('a copied query keeps all digits of integers in every language', () => {
  const filter = { post: { $in: [1768907725507217523n, 2 ** 63] } };
  const copied = { baseUrl: 'http://localhost', collectionId: 'a', needsCredential: false };
  const written = Object.values(LANGUAGES).map(({ write }) =>
    write({ ...copied, request: { vector: [1, 0], filter } }),
  );
  for (const text of written) assert.match(text, /\[1768907725507217523n?, 9223372036854775808\]/);
});

describe('a merge patch', () => {
  test('contains what is new, changed or removed', () => {
    const { patch } = mergePatchBetween(
      { a: 1, b: { c: 1, d: 2 }, e: [1], f: 'x' },
      { a: 1, b: { c: 1, d: 3 }, e: [1, 2], g: { h: 1 } },
    );
    assert.deepEqual(patch, { b: { d: 3 }, e: [1, 2], f: null, g: { h: 1 } });
  });

  test('contains integers beyond the precision of float64 only if they have changed', () => {
    const [one, other] = [1768907725507217522n, 1768907725507217523n];
    const { patch } = mergePatchBetween({ a: one, b: one, c: 1 }, { a: one, b: other, c: 2 });
    assert.deepEqual(patch, { b: other, c: 2 });
  });

  test('of an array with one edited element keeps all digits of the others', () => {
    const [one, other] = [1768907725507217522n, 2n ** 64n - 1n];
    const metadata = { ids: [one, other, 3], post: one };
    const text = stringifyExactJson(metadata, undefined, 2).replace(/\b3\b/, '4');
    const { patch } = mergePatchBetween(metadata, parseObject(text).object!);
    assert.deepEqual(patch, { ids: [one, other, 4] });
  });

  test('names what it cannot express', () => {
    const { patch, nullPaths } = mergePatchBetween({ a: null, b: {} }, { a: null, b: { c: null } });
    assert.deepEqual(patch, { b: {} });
    assert.deepEqual(nullPaths, ['b.c']);
  });
});

describe('the strip of values', () => {
  test('has one bar per value, but at most 64', () => {
    const bars = (count: number) => stripPath(new Float32Array(count).fill(1)).match(/M/g)!.length;
    assert.deepEqual([1, 64, 65, 4_096].map(bars), [1, 64, 64, 64]);
    assert.ok(!/NaN|Infinity/.test(stripPath([0, 0, 0])));
  });

  test('shows the largest magnitude at full height', () => {
    assert.match(stripPath([-2, 1]), /^M0 8h24v8h-24zM32 8h24v-4/);
  });

  test('is summarized in figures', () => {
    const expected = { min: -4, max: 3, mean: -1 / 3, norm: 5, zeroCount: 1 };
    assert.deepEqual(summarizeValues([3, 0, -4]), expected);
  });
});
