import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { increaseOf, parseMetrics, quantilesOf, sumOf } from '../src/api/metrics-text.js';

/** Cumulative counts of a histogram `h` with buckets that end at 1, 2 and infinity. */
function histogram(first: number, second: number, all: number) {
  return parseMetrics(
    [
      `h_bucket{le="1"} ${first}`,
      `h_bucket{le="2"} ${second}`,
      `h_bucket{le="+Inf"} ${all}`,
      `h_count ${all}`,
    ].join('\n'),
  );
}

describe('parseMetrics', () => {
  test('reads names, labels and values, and leaves out comments', () => {
    const metrics = parseMetrics(
      '# HELP a text\n# TYPE a gauge\na 1.5\n\nb{x="1",y="two"} 3 1700\n',
    );
    assert.deepEqual(metrics.get('a'), [{ labels: {}, value: 1.5 }]);
    assert.deepEqual(metrics.get('b'), [{ labels: { x: '1', y: 'two' }, value: 3 }]);
    assert.equal(metrics.size, 2);
  });

  test('undoes the escapes of label values, which may contain braces and commas', () => {
    const [sample] = parseMetrics('m{route="/c/{id},\\"q\\"",b="\\\\n\\n"} 1').get('m')!;
    assert.deepEqual(sample!.labels, { route: '/c/{id},"q"', b: '\\n\n' });
  });

  test('reads exponents and infinity', () => {
    const metrics = parseMetrics('a 1e-7\nb +Inf\nc -Inf');
    assert.deepEqual(
      ['a', 'b', 'c'].map((name) => sumOf(metrics, name)),
      [1e-7, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    );
  });
});

describe('sums and increases', () => {
  const before = parseMetrics('n{status="200"} 10\nn{status="404"} 1');
  const after = parseMetrics('n{status="200"} 16\nn{status="404"} 4');
  const isError = ({ status = '' }) => status.startsWith('4');

  test('a sum covers the samples whose labels pass, and is undefined if none do', () => {
    assert.equal(sumOf(after, 'n'), 20);
    assert.equal(sumOf(after, 'n', isError), 4);
    assert.equal(sumOf(after, 'other'), undefined);
  });

  test('an increase is a difference, from zero after a restart', () => {
    assert.equal(increaseOf(before, after, 'n'), 9);
    assert.equal(increaseOf(before, after, 'n', isError), 3);
    assert.equal(increaseOf(after, before, 'n'), 11);
  });
});

describe('quantilesOf', () => {
  test('interpolates within the bucket of the rank', () => {
    assert.deepEqual(
      quantilesOf(histogram(0, 0, 0), histogram(4, 8, 8), 'h', [0.25, 0.5, 0.75]),
      [0.5, 1, 1.5],
    );
  });

  test('counts only observations between the scrapes', () => {
    assert.deepEqual(
      quantilesOf(histogram(100, 100, 100), histogram(100, 110, 110), 'h', [0.5]),
      [1.5],
    );
  });

  test('is undefined when nothing was observed', () => {
    assert.equal(quantilesOf(histogram(5, 5, 5), histogram(5, 5, 5), 'h', [0.5]), undefined);
  });

  test('returns the start of the last bucket, which is unbounded', () => {
    assert.deepEqual(quantilesOf(histogram(0, 0, 0), histogram(0, 0, 3), 'h', [0.99]), [2]);
  });

  test('counts from zero after a restart', () => {
    assert.deepEqual(quantilesOf(histogram(50, 60, 70), histogram(2, 2, 2), 'h', [0.5]), [0.5]);
  });
});
