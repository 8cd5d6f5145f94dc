// Metadata of one form, and matching filters, paths and declared types, so that filters select something.

import type { Json, JsonObject } from '../../../src/common/types.js';
import type { Random } from './random.js';

/** Paths of the metadata, and some that no vector has. */
export const PATHS = [
  'n',
  'kind',
  'tags',
  'flag',
  'at',
  'place',
  'text',
  'deep.a',
  'talks',
  'mixed',
  'none',
];

const KINDS = ['x', 'y', 'Ä', 'İstanbul', ''];

const point = (random: Random): JsonObject => ({
  lat: random.between(-90, 90),
  lon: random.between(-180, 180),
});

const date = (random: Random): string =>
  `20${random.between(10, 30)}-0${random.between(1, 9)}-1${random.below(10)}`;

/** Generators of metadata members by name. */
const MEMBERS: Readonly<Record<string, (random: Random) => Json>> = {
  n: (random) => (random.chance(0.9) ? random.between(-50, 50) : random.oddNumber()),
  kind: (random) => random.pick(KINDS),
  tags: (random) => random.list(random.below(4), () => random.pick(KINDS)),
  flag: (random) => random.chance(0.5),
  at: date,
  place: point,
  text: (random) => random.sentence(),
  deep: (random) => ({ a: random.between(0, 9), 'b.c': random.pick(KINDS) }),
  talks: (random) =>
    random.list(random.below(3), () => ({
      by: random.pick(KINDS),
      minutes: random.between(0, 60),
    })),
  mixed: (random) => random.pick<Json>([null, 1, '1', true, [], {}, [1, 'a', null], 'x']),
};

export function makeMetadata(random: Random): JsonObject {
  const names = Object.keys(MEMBERS).filter(() => random.chance(0.5));
  const members = names.map((name) => [name, toJson(MEMBERS[name]!(random))] as const);
  if (random.chance(0.05)) members.push([random.word(), random.oddText()]);
  return Object.fromEntries(members);
}

/** Numbers that JSON lacks become null, as in `JSON.stringify`. */
function toJson(value: Json): Json {
  return typeof value === 'number' && !Number.isFinite(value) ? null : value;
}

const ranges = ['$gt', '$gte', '$lt', '$lte'] as const;

/** Generators of conditions by operator. */
const CONDITIONS: Readonly<Record<string, (random: Random) => readonly [string, Json]>> = {
  equal: (random) => [random.pick(['n', 'kind', 'mixed']), random.pick<Json>([1, 'x', null, true])],
  range: (random) => ['n', { [random.pick(ranges)]: random.between(-50, 50) }],
  rangeOfText: (random) => ['kind', { [random.pick(ranges)]: random.pick(KINDS) }],
  not: (random) => [random.pick(PATHS), { $ne: random.pick<Json>([0, 'x', false]) }],
  within: (random) => [
    random.pick(['n', 'kind', 'tags']),
    { [random.pick(['$in', '$nin'])]: [random.between(0, 9), random.pick(KINDS), null] },
  ],
  exists: (random) => [random.pick(PATHS), { $exists: random.chance(0.5) }],
  type: (random) => [
    random.pick(PATHS),
    { $type: random.pick<Json>(['null', ['number', 'array']]) },
  ],
  text: (random) => [
    'text',
    {
      [random.pick(['$prefix', '$suffix'])]: random.word(),
      ...(random.chance(0.3) && { $case: 'insensitive' }),
    },
  ],
  like: (random) => ['text', { $like: `%${random.word()}_%` }],
  regex: (random) => [
    'text',
    { $regex: random.pick(['w[0-3]+ w', '^w1', '(a|b)*c', 'w\\d$', '.*']) },
  ],
  date: (random) => ['at', { $date: { [random.pick(ranges)]: date(random) } }],
  contains: (random) => ['tags', { $contains: random.pick(KINDS) }],
  containsSome: (random) => [
    'tags',
    {
      [random.pick(['$contains_any', '$contains_all', '$contains_only'])]: [
        random.pick(KINDS),
        'x',
      ],
    },
  ],
  size: (random) => [
    random.pick(['tags', 'talks']),
    { $size: random.pick<Json>([0, 2, { $gte: 1 }]) },
  ],
  element: (random) => [
    'talks',
    { $elem_match: { by: random.pick(KINDS), minutes: { $gte: random.between(0, 60) } } },
  ],
  radius: (random) => [
    'place',
    { $geo_radius: { center: point(random), radius_meters: random.between(1, 9_000_000) } },
  ],
  box: (random) => [
    'place',
    { $geo_box: { top_left: point(random), bottom_right: point(random) } },
  ],
  polygon: (random) => [
    'place',
    { $geo_polygon: { exterior: random.list(random.between(3, 6), () => point(random)) } },
  ],
  id: (random) => ['$id', { $prefix: random.pick(['v', 'v1', 'w']) }],
};

export function makeFilter(random: Random, depth = 0): JsonObject {
  if (depth < 3 && random.chance(0.25)) {
    const parts = () => random.list(random.between(1, 3), () => makeFilter(random, depth + 1));
    const kind = random.pick(['$and', '$or', '$not']);
    return { [kind]: kind === '$not' ? makeFilter(random, depth + 1) : parts() };
  }
  const names = Object.keys(CONDITIONS);
  const count = random.chance(0.1) ? 0 : random.between(1, 2);
  return Object.fromEntries(random.list(count, () => CONDITIONS[random.pick(names)]!(random)));
}

export const DECLARED_SCHEMA: JsonObject = { kind: 'string', flag: 'boolean', tags: 'string[]' };
