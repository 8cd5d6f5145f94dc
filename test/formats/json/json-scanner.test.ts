import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  JsonScanner,
  readMembers,
  readUniqueMembers,
} from '../../../src/formats/json/json-scanner.js';
import { IS_NIGHTLY } from '../../support/nightly.js';

const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 2 ** 31);
console.log(`SAGITTA_TEST_SEED=${seed}`);

/** Returns the text of `metadata` in each row of `vectors`. */
function metadataIn(text: string, rowCount: number): string[] {
  const body = Buffer.from(text);
  const scanner = new JsonScanner(body);
  scanner.findMember('vectors');
  scanner.moveTo(scanner.start);
  return Array.from({ length: rowCount }, () => {
    scanner.enterElement();
    scanner.findMember('metadata');
    return body.toString('utf8', scanner.start, scanner.end);
  });
}

describe('a member found by the scanner', () => {
  it('has the exact text of each row, and no text in rows without it', () => {
    const text = ` { "mode" : "insert" , "vectors" : [ {"id":"]","values":[1,2],"metadata" : { "n" : 1.0, "m":1e2 , "big":12345678901234567890 } } ,{"values":[]}, {"metadata":{}} ] } `;
    assert.deepEqual(metadataIn(text, 3), [
      '{ "n" : 1.0, "m":1e2 , "big":12345678901234567890 }',
      '',
      '{}',
    ]);
  });

  it('follows JSON.parse: the last of equal names wins, at every level', () => {
    const text =
      '{"vectors":[{"metadata":{"x":1}}],"vectors":[{"metadata":{"x":2},"metadata":{"x":3}}]}';
    assert.deepEqual(metadataIn(text, 1), ['{"x":3}']);
  });

  it('is recognized however its name is spelled', () => {
    const text = String.raw`{"v\u0065ctors":[{"metad\u0061ta":{"a":1},"values":["metadata\"",[{"metadata":2}]]}]}`;
    assert.deepEqual(metadataIn(text, 1), ['{"a":1}']);
  });

  it('is not confused with the same name inside it, in strings or in other members', () => {
    const text =
      '{"x":{"vectors":[{"metadata":0}]},"vectors":[{"id":"\\"metadata\\":{}","metadata":{"metadata":{"vectors":[["]}"]]}},"y":[{"metadata":1}]}]}';
    assert.deepEqual(metadataIn(text, 1), ['{"metadata":{"vectors":[["]}"]]}}']);
  });

  it('may be in a single object', () => {
    const body = Buffer.from('{"id":"a","metadata":{"é":"ü"} , "values":[1]}');
    const scanner = new JsonScanner(body);
    scanner.findMember('metadata');
    assert.equal(body.toString('utf8', scanner.start, scanner.end), '{"é":"ü"}');
    const empty = new JsonScanner(Buffer.from('{}'));
    empty.findMember('metadata');
    assert.deepEqual([empty.start, empty.end], [0, 0]);
  });

  it('ends after long strings, whatever they escape', () => {
    for (const tail of ['', '\\', '"', '\\"', '\\\\', '"'.repeat(9), '\\'.repeat(9)]) {
      for (let length = 28; length < 36; length++) {
        const metadata = JSON.stringify({ a: 'x'.repeat(length) + tail + 'y'.repeat(40) + tail });
        assert.deepEqual(metadataIn(`{"vectors":[{"metadata":${metadata},"z":"}"}]}`, 1), [
          metadata,
        ]);
      }
    }
  });

  it('is found in time proportional to the text, whatever it nests', () => {
    const nested = `${'['.repeat(400_000)}"${']'.repeat(1000)}"${']'.repeat(400_000)}`;
    const text = `{"x":${nested},"vectors":[{"metadata":{"a":1}}]}`;
    const start = performance.now();
    assert.deepEqual(metadataIn(text, 1), ['{"a":1}']);
    assert.ok(performance.now() - start < 30_000);
  });

  it('agrees with JSON.parse on any JSON, however it is spelled', () => {
    fc.assert(
      fc.property(batchArbitrary, ({ text, rowCount }) => {
        const parsed = JSON.parse(text) as { vectors: { metadata?: unknown }[] };
        const found = metadataIn(text, rowCount);
        for (const [row, { metadata }] of parsed.vectors.entries()) {
          if (metadata === undefined) assert.equal(found[row], '');
          else assert.deepEqual(JSON.parse(found[row]!), metadata);
        }
        // The text itself, which follows a colon in the body.
        for (const span of found) if (span !== '') assert.ok(text.includes(span));
      }),
      { seed, numRuns: IS_NIGHTLY ? 3_000 : 800 },
    );
  });
});

it('finds the members that JSON.parse finds, each with the text that it was spelled with', () => {
  const spaces = fc.constantFrom('', ' ', '\t', ' \r\n ');
  const objects = fc.uniqueArray(fc.tuple(fc.string({ unit: 'binary' }), fc.json(), spaces), {
    selector: ([name]) => name,
  });
  fc.assert(
    fc.property(objects, (members) => {
      const spelled = members.map(
        ([name, text, space]) => `${space}${JSON.stringify(name)}${space}:${space}${text}${space}`,
      );
      assert.deepEqual(
        readUniqueMembers(` {${spelled.join(',')}} `),
        members.map(([name, text]) => ({
          name,
          nameText: JSON.stringify(name),
          text: text.trim(),
        })),
      );
    }),
    { seed, numRuns: IS_NIGHTLY ? 500 : 200 },
  );
});

it('keeps numbers that parsing would change', () => {
  const text = '{"a":12345678901234567890,"b":1.0,"c":-0,"d":1e400}';
  assert.deepEqual(
    readUniqueMembers(text).map((member) => member.text),
    ['12345678901234567890', '1.0', '-0', '1e400'],
  );
});

const BROKEN = [
  ['', /expected { at character 1, found the end/],
  ['[1]', /expected { at character 1, found "\[1\]"/],
  ['{"a"}', /expected : at character 5/],
  ['{"a":}', /expected a value at character 6/],
  ['{"a":1', /expected } at character 7, found the end/],
  ['{"a":1,}', /expected " at character 8/],
  ['{"a":[1,2}', /expected the end of a value|expected/],
  ['{"a":"b}', /expected " at character 9, found the end/],
  ['{a:1}', /expected " at character 2, found "a:1}"/],
  ['{"a":1}{"a":1}', /expected the end at character 8/],
  ['{"a":1,"a":2}', /the member "a" appears twice/],
] as const;

for (const [text, message] of BROKEN) {
  it(`rejects ${JSON.stringify(text)}`, () => {
    assert.throws(() => readUniqueMembers(text), { name: 'SyntaxError', message });
  });
}

it('returns all members of a repeated name, unless names must be unique', () => {
  const texts = readMembers('{"a":1,"a":2}').map(({ name, text }) => `${name}=${text}`);
  assert.deepEqual(texts, ['a=1', 'a=2']);
});

it('treats only blanks, tabs and line breaks as white space', () => {
  assert.equal(readMembers(' {\t"a"\r:\n1 } ')[0]!.text, '1');
  for (const character of ['\0', '\x01', '\x0b', '\x0c', '\x1f']) {
    assert.throws(() => readMembers(`{"a":${character}1}`), SyntaxError);
    assert.throws(() => readMembers(`{"a":1}${character}`), SyntaxError);
  }
});

// JSON text with odd spaces, escapes and repeated names.

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
