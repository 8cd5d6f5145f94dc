import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseMetrics, sumOf } from '../src/api/metrics-text.js';

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

test('a sum covers all samples of a metric, and is undefined if there are none', () => {
  const metrics = parseMetrics('n{status="200"} 16\nn{status="404"} 4');
  assert.equal(sumOf(metrics, 'n'), 20);
  assert.equal(sumOf(metrics, 'other'), undefined);
});
