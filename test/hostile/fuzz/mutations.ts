// Changes that make requests invalid or unusual: members of bodies, their text and bytes, types, parameters, paths,
// headers, methods, and how they are delivered.

import { gzipSync } from 'node:zlib';
import type { Json, JsonObject } from '../../../src/common/types.js';
import { mutateBytes } from '../../support/mutate-bytes.js';
import type { Draft } from './drafts.js';
import type { Random } from './random.js';
import type { World } from './world.js';

type Mutate = (draft: Draft, random: Random, world: World) => void;

/** Changes the draft, usually once. */
export function mutateDraft(draft: Draft, random: Random, world: World): void {
  for (let count = random.chance(0.2) ? 2 : 1; count > 0; count--) {
    const hasBody = draft.json !== undefined || draft.bytes !== null;
    const kind = random.weighted(hasBody ? { ...WEIGHTS, ...BODY_WEIGHTS } : WEIGHTS);
    MUTATIONS[kind]!(draft, random, world);
  }
}

const WEIGHTS: Readonly<Record<string, number>> = {
  query: 4,
  path: 2,
  headers: 3,
  credentials: 1,
  method: 1,
  framing: 0.5,
  cut: 0.5,
  unwantedBody: 0.5,
};
const BODY_WEIGHTS: Readonly<Record<string, number>> = {
  member: 14,
  text: 4,
  bytes: 3,
  type: 2,
};

const MUTATIONS: Readonly<Record<string, Mutate>> = {
  member(draft, random) {
    if (draft.json !== undefined) draft.json = changeMember(draft.json, random);
  },
  text(draft, random) {
    const text = draft.json === undefined ? draft.bytes!.toString() : JSON.stringify(draft.json);
    setBytes(draft, Buffer.from(changeText(text, random)));
  },
  bytes(draft, random) {
    let bytes = bodyOf(draft);
    const others = [bytes];
    for (let count = random.between(1, 3); count > 0 && bytes.length > 0; count--) {
      bytes = mutateBytes(Buffer.from(bytes), (bound) => random.below(Math.max(1, bound)), others);
    }
    setBytes(draft, bytes);
  },
  type(draft, random) {
    draft.headers = draft.headers.filter(([name]) => name !== 'content-type');
    const type = random.pick(CONTENT_TYPES);
    if (type !== null) draft.headers.push(['content-type', type]);
    if (!random.chance(0.2)) return;
    setBytes(draft, gzipSync(bodyOf(draft)));
    draft.headers.push(['content-encoding', random.pick(['gzip', 'zstd', 'br', 'identity', 'x'])]);
  },
  query(draft, random) {
    const names = draft.operation.parameters.filter((parameter) => parameter.in === 'query');
    const name = random.pickAny(names)?.name ?? 'unknown';
    const value = random.pick([
      () => random.oddText(),
      () => String(random.oddNumber()),
      () => changeText('{"n":{"$gt":[1,{"a":null}]}}', random),
      () => tamper(draft.query.find(([known]) => known === 'cursor')?.[1] ?? 'cursor', random),
    ])();
    switch (random.below(4)) {
      case 0:
        draft.query.push([random.oddText(), value]);
        break;
      case 1:
        draft.rawQuery = random.pick([
          '%',
          '%zz',
          '%ff=1',
          '=',
          '&&',
          'limit',
          'limit=1&limit=2',
          '?',
        ]);
        break;
      default:
        draft.query = draft.query.filter(([known]) => known !== name);
        draft.query.push([name, value]);
    }
  },
  path(draft, random) {
    const names = Object.keys(draft.pathValues);
    const name = random.pickAny(names);
    if (name !== undefined && random.chance(0.7)) {
      draft.pathValues[name] = random.oddText();
      return;
    }
    draft.rawPath = random.pick([
      '/',
      '//',
      '/v1',
      '/v1/',
      '/v2/collections',
      '/collections/',
      '/collections/..',
      '/../etc/passwd',
      '/collections/%2e%2e/vectors',
      '/collections/%00',
      '/collections/%ff%fe',
      '/collections/%',
      '/%',
      '/collections/a/b/c/d/e',
      '/COLLECTIONS',
      '/collections;a=b',
      '/collections/%2Fv1',
      '*',
      `/collections/${'x'.repeat(random.pick([100, 500, 9_000]))}`,
      '/docs',
      '/console/',
      '/livez/',
    ]);
  },
  headers(draft, random) {
    const [name, values] = random.pick(ODD_HEADERS);
    draft.headers = draft.headers.filter(([known]) => known.toLowerCase() !== name);
    draft.headers.push([name, random.pick(values)]);
  },
  credentials(draft, random, world) {
    const own = random.pickAny(world.keys)?.secret;
    const value = random.pick([
      '',
      'Bearer',
      'Bearer ',
      'Bearer x',
      'Basic YTpi',
      'Bearer sk_x_y',
      own,
    ]);
    draft.headers.push([
      'authorization',
      value === own ? `Bearer ${own ?? 'none'}` : (value ?? ''),
    ]);
  },
  method(draft, random) {
    draft.method = random.pick([
      'GET',
      'HEAD',
      'POST',
      'PUT',
      'PATCH',
      'DELETE',
      'OPTIONS',
      'TRACE',
    ]);
  },
  /** Wrong or invalid headers about the length of the body. */
  framing(draft, random) {
    const length = bodyOf(draft).length;
    const odd: readonly (readonly [string, string])[] = [
      ['content-length', String(length + 5)],
      ['content-length', String(Math.max(0, length - 5))],
      ['content-length', '-1'],
      ['content-length', '1e3'],
      ['content-length', '99999999999999999999'],
      ['content-length', '70000000'],
      ['transfer-encoding', 'gzip'],
      ['transfer-encoding', 'chunked, chunked'],
    ];
    draft.headers.push([...random.pick(odd)]);
    draft.delivery = { kind: 'cut', byteCount: Number.MAX_SAFE_INTEGER };
  },
  cut(draft, random) {
    draft.delivery = { kind: 'cut', byteCount: random.below(bodyOf(draft).length + 200) };
  },
  unwantedBody(draft, random) {
    setBytes(draft, Buffer.from(random.pick(['{}', '', 'x', '[]', 'null'])));
    draft.headers.push(['content-type', 'application/json']);
  },
};

function bodyOf(draft: Draft): Buffer {
  if (draft.json !== undefined) return Buffer.from(JSON.stringify(draft.json));
  return draft.bytes ?? Buffer.alloc(0);
}

function setBytes(draft: Draft, bytes: Buffer): void {
  draft.json = undefined;
  draft.bytes = bytes;
}

const CONTENT_TYPES: readonly (string | null)[] = [
  null,
  '',
  'text/plain',
  'application/json; charset=utf-16',
  'application/json;charset=UTF-8',
  'application/x-ndjson',
  'application/vnd.apache.arrow.stream',
  'application/merge-patch+json',
  'application/octet-stream',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  'application/vnd.apache.parquet',
  'application',
  '/',
  'application/json, text/plain',
  'Application/JSON',
];

const ODD_HEADERS: readonly (readonly [string, readonly string[]])[] = [
  [
    'accept',
    ['', 'text/html', 'application/json;q=0', '*/*;q=x', 'application/*', ',,,', 'a'.repeat(5_000)],
  ],
  ['accept-encoding', ['gzip', 'br, zstd', '*;q=0']],
  ['if-none-match', ['*', '', '"', 'W/"x"', '"x", "y"', '*, "x"']],
  ['if-match', ['*', '', '"', 'W/"x"', '"0"', '"99999999999999999999"']],
  ['idempotency-key', ['', 'x'.repeat(255), 'x'.repeat(256), '\u00e9', 'a b', ' ']],
  ['expect', ['100-continue', 'x']],
  ['host', ['', 'evil.example', 'localhost', '127.0.0.1:1', '[::1]', 'a b']],
  ['origin', ['null', 'https://app.example.org', 'http://127.0.0.1', 'x']],
  ['traceparent', ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'x', '']],
  ['x-request-id', ['abc-1', '\u00ff', 'x'.repeat(65), '']],
  ['x-forwarded-for', ['1.2.3.4', 'x, y']],
  ['x-long', ['x'.repeat(20_000), 'x'.repeat(9_000)]],
  ['connection', ['close', 'upgrade', 'keep-alive, x']],
  ['upgrade', ['websocket', 'h2c']],
  ['range', ['bytes=0-1']],
  ['sec-fetch-site', ['cross-site', 'same-origin', 'x']],
  ['bad name', ['x']],
  ['x-control', ['a\u0001b', 'a\u0000b', 'a\rb']],
];

function tamper(token: string, random: Random): string {
  const at = random.below(token.length);
  return random.pick([
    `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`,
    token.slice(0, at),
    `${token}A`,
    `${token}.${token}`,
    token.toUpperCase(),
  ]);
}

/** A location in a value: the container, and the name or index in it. */
interface Place {
  readonly container: JsonObject | Json[];
  readonly name: string | number;
}

function* placesIn(value: Json): Generator<Place> {
  if (typeof value !== 'object' || value === null) return;
  const names = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  for (const name of names) {
    yield { container: value, name };
    yield* placesIn(Reflect.get(value, name) as Json);
  }
}

/** A copy with a member or an element replaced, removed, added or repeated. */
function changeMember(value: Json, random: Random): Json {
  const changed = structuredClone(value);
  const place = random.pickAny([...placesIn(changed)]);
  if (place === undefined || random.chance(0.03)) return oddValue(random);
  const { container, name } = place;
  const found = Reflect.get(container, name) as Json;
  const change = random.weighted({ replace: 6, near: 3, remove: 2, add: 2, repeat: 1 });
  switch (change) {
    case 'replace':
      Reflect.set(container, name, oddValue(random));
      break;
    case 'near':
      Reflect.set(container, name, nearValue(found, random));
      break;
    case 'remove':
      if (Array.isArray(container)) container.splice(Number(name), 1);
      else delete container[name];
      break;
    case 'add':
      if (Array.isArray(container)) container.push(oddValue(random));
      else Object.assign(container, { [random.oddText()]: oddValue(random) });
      break;
    case 'repeat':
      if (Array.isArray(container)) {
        const times = random.pick([1, 2, 100, 1_100]);
        container.push(...new Array<Json>(times).fill(found));
      } else {
        Object.assign(container, { [`${name}2`]: found });
      }
      break;
  }
  return changed;
}

/** A value of the same type at or beyond a bound. */
function nearValue(found: Json, random: Random): Json {
  if (typeof found === 'number') {
    return random.pick([
      found + 1,
      found - 1,
      -found,
      found + 0.5,
      found * 1e6,
      0,
      1_000,
      1_001,
      10_001,
    ]);
  }
  if (typeof found === 'string') {
    return random.pick([
      `${found} `,
      found.toUpperCase(),
      found.slice(1),
      `${found}\u0000`,
      found.repeat(40),
    ]);
  }
  if (Array.isArray(found))
    return random.pick<Json>([[], [found], found.slice(1), [...found, ...found]]);
  if (typeof found === 'boolean') return !found;
  return {};
}

function oddValue(random: Random): Json {
  switch (random.below(8)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
    case 3:
      return random.oddNumber();
    case 4:
    case 5:
      return random.oddText();
    case 6:
      return random.list(random.below(3), () => oddValue(random));
    default:
      return nested(random);
  }
}

function nested(random: Random): Json {
  let value: Json = random.chance(0.5) ? {} : [];
  for (let depth = random.pick([0, 1, 9, 17, 40, 300]); depth > 0; depth--) {
    value = random.chance(0.5) ? [value] : { [random.chance(0.9) ? '$and' : 'a']: value };
  }
  return value;
}

const REPEATED = 20_000;

function changeText(text: string, random: Random): string {
  const at = random.below(text.length + 1);
  const insert = (part: string) => text.slice(0, at) + part + text.slice(at);
  const replaceNumber = (part: string) => text.replace(/\b\d+(\.\d+)?/, () => part);
  return random.pick([
    () => text.slice(0, at),
    () => '',
    () => `${text}${text}`,
    () => `\ufeff${text}`,
    () =>
      insert(random.pick(['\u0000', '\n', ',', '"', '\\', '\\u12', '/*', ' ', '\u2028', '{', ']'])),
    () => insert('['.repeat(REPEATED)),
    () => `${'{"a":'.repeat(REPEATED)}1${'}'.repeat(REPEATED)}`,
    () =>
      replaceNumber(random.pick(['NaN', 'Infinity', '-', '01', '1.', '.1', '0x1', '1e', '1e999'])),
    () => replaceNumber('9'.repeat(random.pick([20, 400, 5_000]))),
    () => replaceNumber(`0.${'0'.repeat(400)}1`),
    () => text.replace('{', '{"__proto__":{"a":1},'),
    // Repeats a name.
    () => text.replace(/"(\w+)":/, (found) => `${found}null,${found}`),
    () => text.replaceAll('"', "'"),
    () => text.replace(/"(\w)/, '"\\ud800$1'),
    () => text.replace(/,"/, ',,"'),
  ])();
}
