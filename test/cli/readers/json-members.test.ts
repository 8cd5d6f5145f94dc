import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { membersOf } from '../../../src/cli/readers/json-members.js';

const SEED = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 2 ** 31);

it('finds the members that JSON.parse finds, each with the text that it was spelled with', (t) => {
  t.diagnostic(`seed ${SEED}`);
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
        membersOf(` {${spelled.join(',')}} `),
        members.map(([name, text]) => ({ name, text: text.trim() })),
      );
    }),
    { seed: SEED, numRuns: 500 },
  );
});

it('keeps numbers that parsing would change', () => {
  const text = '{"a":12345678901234567890,"b":1.0,"c":-0,"d":1e400}';
  assert.deepEqual(
    membersOf(text).map((member) => member.text),
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
  it(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(() => membersOf(text), { name: 'SyntaxError', message });
  });
}
