import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { findMetadataSpan, findMetadataSpans } from '../../../src/server/ingest/metadata-span.js';

const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 2 ** 31);
console.log(`SAGITTA_TEST_SEED=${seed}`);

function spansIn(text: string, rowCount: number): string[] {
  const body = Buffer.from(text);
  const spans = findMetadataSpans(body, rowCount);
  return Array.from({ length: rowCount }, (_, row) =>
    body.toString('utf8', spans[2 * row], spans[2 * row + 1]),
  );
}

describe('metadata spans', () => {
  it('give the very text of each row, and nothing where there is none', () => {
    const text = ` { "mode" : "insert" , "vectors" : [ {"id":"]","values":[1,2],"metadata" : { "n" : 1.0, "m":1e2 , "big":12345678901234567890 } } ,{"values":[]}, {"metadata":{}} ] } `;
    assert.deepEqual(spansIn(text, 3), [
      '{ "n" : 1.0, "m":1e2 , "big":12345678901234567890 }',
      '',
      '{}',
    ]);
  });

  it('follow JSON.parse: the last of equal names wins, at every level', () => {
    const text =
      '{"vectors":[{"metadata":{"x":1}}],"vectors":[{"metadata":{"x":2},"metadata":{"x":3}}]}';
    assert.deepEqual(spansIn(text, 1), ['{"x":3}']);
  });

  it('know a name however it is spelled', () => {
    const text = String.raw`{"v\u0065ctors":[{"metad\u0061ta":{"a":1},"values":["metadata\"",[{"metadata":2}]]}]}`;
    assert.deepEqual(spansIn(text, 1), ['{"a":1}']);
  });

  it('are not led astray by metadata inside metadata, in strings or in other members', () => {
    const text =
      '{"x":{"vectors":[{"metadata":0}]},"vectors":[{"id":"\\"metadata\\":{}","metadata":{"metadata":{"vectors":[["]}"]]}},"y":[{"metadata":1}]}]}';
    assert.deepEqual(spansIn(text, 1), ['{"metadata":{"vectors":[["]}"]]}}']);
  });

  it('find the metadata of a single vector', () => {
    const body = Buffer.from('{"id":"a","metadata":{"é":"ü"} , "values":[1]}');
    const [start, end] = findMetadataSpan(body);
    assert.equal(body.toString('utf8', start, end), '{"é":"ü"}');
    assert.deepEqual([...findMetadataSpan(Buffer.from('{}'))], [0, 0]);
  });

  it('find the end of long strings, whatever is escaped in them', () => {
    for (const tail of ['', '\\', '"', '\\"', '\\\\', '"'.repeat(9), '\\'.repeat(9)]) {
      for (let length = 28; length < 36; length++) {
        const metadata = JSON.stringify({ a: 'x'.repeat(length) + tail + 'y'.repeat(40) + tail });
        assert.deepEqual(spansIn(`{"vectors":[{"metadata":${metadata},"z":"}"}]}`, 1), [metadata]);
      }
    }
  });

  it('take time in proportion to the body, whatever it nests', () => {
    const nested = `${'['.repeat(400_000)}"${']'.repeat(1000)}"${']'.repeat(400_000)}`;
    const text = `{"x":${nested},"vectors":[{"metadata":{"a":1}}]}`;
    const start = performance.now();
    assert.deepEqual(spansIn(text, 1), ['{"a":1}']);
    assert.ok(performance.now() - start < 1000);
  });

  it('agree with JSON.parse on any JSON, however it is spelled', () => {
    fc.assert(
      fc.property(batchArbitrary, ({ text, rowCount }) => {
        const parsed = JSON.parse(text) as { vectors: { metadata?: unknown }[] };
        const found = spansIn(text, rowCount);
        for (const [row, { metadata }] of parsed.vectors.entries()) {
          if (metadata === undefined) assert.equal(found[row], '');
          else assert.deepEqual(JSON.parse(found[row]!), metadata);
        }
        // The text itself: it stands in the body right after a colon.
        for (const span of found) if (span !== '') assert.ok(text.includes(span));
      }),
      { seed, numRuns: 3000 },
    );
  });
});

// JSON as text, with odd spaces, escapes and repeated names.

const space = fc.constantFrom('', '', '', ' ', '\n', '\t\r\n ');

const spelled = (text: string) =>
  fc.array(fc.boolean(), { minLength: text.length, maxLength: text.length }).map((escaped) => {
    const units = [...Array(text.length).keys()].map((i) => {
      const escapeSequence = `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`;
      return escaped[i] ? escapeSequence : JSON.stringify(text[i]).slice(1, -1);
    });
    return `"${units.join('')}"`;
  });

const name = fc
  .oneof(
    fc.constantFrom('metadata', 'vectors', 'id', '', 'metadat', 'metadatas', '__proto__', 'é"\\'),
    fc.string(),
  )
  .chain((text) => fc.oneof(fc.constant(JSON.stringify(text)), spelled(text)));

const literal = fc.oneof(
  fc.constantFrom('true', 'false', 'null', '1.0', '-0', '1e2', '12345678901234567890', '0.5E-3'),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.string().map((value) => JSON.stringify(value)),
  fc.constantFrom('"]"', '"[{"', '"\\\\"', '"\\""', '",\\"metadata\\":{"'),
);

const joined = (open: string, parts: fc.Arbitrary<string>, close: string) =>
  fc
    .tuple(fc.array(fc.tuple(space, parts, space), { maxLength: 4 }), space)
    .map(([list, blank]) =>
      list.length === 0
        ? `${open}${blank}${close}`
        : `${open}${list.map((part) => part.join('')).join(',')}${close}`,
    );

const member = (value: fc.Arbitrary<string>) =>
  fc.tuple(name, space, space, value).map(([key, before, after, text]) => {
    return `${key}${before}:${after}${text}`;
  });

const { value: json } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    literal,
    joined('[', tie('value'), ']'),
    joined('{', member(tie('value')), '}'),
    joined('[', fc.constantFrom('1', '-2.5', '3e-7'), ']'),
  ),
}));

const row = joined('{', member(json), '}');

const batchArbitrary = fc
  .tuple(
    fc.array(member(json), { maxLength: 2 }),
    fc.array(fc.tuple(space, row, space), { maxLength: 5 }),
    space,
    fc.oneof(fc.constant('"vectors"'), spelled('vectors')),
  )
  .map(([before, rows, blank, key]) => {
    const list = rows.length === 0 ? blank : rows.map((parts) => parts.join('')).join(',');
    const last = `${blank}${key}${blank}:${blank}[${list}]`;
    return { text: `${blank}{${[...before, last].join(',')}${blank}}`, rowCount: rows.length };
  });
