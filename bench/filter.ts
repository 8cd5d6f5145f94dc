// Filters over the metadata of a million rows in segments: uncached on one thread, uncached in a pool of two
// threads, and cached. Counts are checked against a plain loop.
//
//   node dist/bench/filter.js                 smoke parameters: a second, only checks the bench
//   node dist/bench/filter.js --full          the parameters of docs/performance.md
//   node dist/bench/filter.js --only TEXT     only predicates whose description contains TEXT
//   node dist/bench/filter.js --out FILE      also writes the table as Markdown

import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { countBits } from '../src/common/bitmap.js';
import { DEFAULT_LIMITS } from '../src/common/limits.js';
import type { JsonObject } from '../src/common/types.js';
import { countVisible, takeSnapshot } from '../src/database/collection/snapshot.js';
import { FilterCache } from '../src/database/filters/filter-cache.js';
import { evaluateFilter } from '../src/filter/evaluate.js';
import { selectRows } from '../src/filter/evaluate-task.js';
import type { FilterNode } from '../src/filter/filter-node.js';
import { parseFilter } from '../src/filter/parse.js';
import { createThreadPool } from '../src/platform/pool.js';
import { Segment } from '../src/segment/segment.js';
import { batchOf, createRandom } from '../test/database/harness.js';

const SMOKE = { rowCount: 100_000, runCount: 20 };
const FULL = { rowCount: 1_000_000, runCount: 300 };
/** Enough runs for every thread to compile its loops. */
const WARM_UP_RUNS = 30;
/** Predicates that take a hundred times as long are run a tenth as often. */
const SLOW_SHARE = 0.1;
const THREADS = 2;
const BATCH_ROWS = 8_192;
const SEED = 11;

interface Document {
  readonly price: number;
  readonly category: string;
  readonly name: string;
  readonly tags: readonly string[];
  readonly discount?: number;
  /** Human-readable text; all values are distinct. */
  readonly title: string;
  /** RFC 3339 times with several offsets; all values are distinct. */
  readonly created: string;
  readonly place: Point;
}

type Point = { readonly lat: number; readonly lon: number };

interface Predicate {
  readonly what: string;
  readonly filter: JsonObject;
  readonly keeps: (document: Document, row: number) => boolean;
  readonly isSlow?: true;
}

const isSlow = true;

const TEN = Array.from({ length: 10 }, (_, i) => `category ${i * 97}`);

const RING = createCircle(100);

const PREDICATES: readonly Predicate[] = [
  {
    what: 'integer range, half of the rows',
    filter: { price: { $gte: 25_000, $lt: 75_000 } },
    keeps: ({ price }) => price >= 25_000 && price < 75_000,
  },
  {
    what: 'integer range with one bound',
    filter: { price: { $gte: 90_000 } },
    keeps: ({ price }) => price >= 90_000,
  },
  {
    what: 'string equality, 1 of 1 000',
    filter: { category: 'category 7' },
    keeps: ({ category }) => category === 'category 7',
  },
  {
    what: 'string equality, all values distinct',
    filter: { name: 'name 4711' },
    keeps: ({ name }) => name === 'name 4711',
  },
  {
    what: '$in of 10 strings of 1 000',
    filter: { category: { $in: TEN } },
    keeps: ({ category }) => TEN.includes(category),
  },
  {
    what: '$and of an integer range and a string equality',
    filter: { $and: [{ price: { $gte: 25_000, $lt: 75_000 } }, { category: 'category 7' }] },
    keeps: ({ price, category }) => price >= 25_000 && price < 75_000 && category === 'category 7',
  },
  {
    what: 'integer range over a path that is missing in half of the rows',
    filter: { discount: { $gte: 20, $lt: 60 } },
    keeps: ({ discount }) => discount !== undefined && discount >= 20 && discount < 60,
  },
  {
    what: '$contains over arrays of two strings of 50',
    filter: { tags: { $contains: 'tag 7' } },
    keeps: ({ tags }) => tags.includes('tag 7'),
  },
  {
    what: '$prefix, all values distinct',
    filter: { title: { $prefix: 'Shelf 12' } },
    keeps: ({ title }) => title.startsWith('Shelf 12'),
    isSlow,
  },
  {
    what: '$prefix without case, all values distinct',
    filter: { title: { $prefix: 'shelf 12', $case: 'insensitive' } },
    keeps: ({ title }) => title.startsWith('Shelf 12'),
    isSlow,
  },
  {
    what: '$like with two wildcards, all values distinct',
    filter: { title: { $like: '%12%blue' } },
    keeps: ({ title }) => /12.*blue$/.test(title),
    isSlow,
  },
  {
    what: '$regex that begins with a literal, all values distinct',
    filter: { title: { $regex: '^Shelf \\d*7, ' } },
    keeps: ({ title }) => /^Shelf \d*7, /.test(title),
    isSlow,
  },
  {
    what: '$regex with alternatives and a class, all values distinct',
    filter: { title: { $regex: '(12|34)[0-9]*9, (red|blue)$' } },
    keeps: ({ title }) => /(12|34)[0-9]*9, (red|blue)$/.test(title),
    isSlow,
  },
  {
    what: '$regex without case, all values distinct',
    filter: { title: { $regex: 'shelf 99|GREEN', $case: 'insensitive' } },
    keeps: ({ title }) => /shelf 99|GREEN/i.test(title),
    isSlow,
  },
  {
    what: '$regex, 1 000 values',
    filter: { category: { $regex: '[37]$' } },
    keeps: ({ category }) => /[37]$/.test(category),
  },
  {
    what: '$date in a month, all values distinct',
    filter: { created: { $date: { $gte: '2024-02-01', $lt: '2024-03-01' } } },
    keeps: ({ created }) => {
      const time = Date.parse(created);
      return time >= Date.UTC(2024, 1) && time < Date.UTC(2024, 2);
    },
    isSlow,
  },
  {
    what: '$geo_radius of 500 km',
    filter: { place: { $geo_radius: { center: { lat: 50, lon: 10 }, radius_meters: 500_000 } } },
    keeps: ({ place }) => angleBetween(place, { lat: 50, lon: 10 }) * 6_371_008.8 <= 500_000,
    isSlow,
  },
  {
    what: '$geo_box',
    filter: {
      place: { $geo_box: { top_left: { lat: 60, lon: -10 }, bottom_right: { lat: 35, lon: 30 } } },
    },
    keeps: ({ place: { lat, lon } }) => lat >= 35 && lat <= 60 && lon >= -10 && lon <= 30,
    isSlow,
  },
  {
    what: '$geo_polygon of 100 points',
    filter: { place: { $geo_polygon: { exterior: RING } } },
    keeps: ({ place: { lat, lon } }) => isInRing(RING, lat, lon),
    isSlow,
  },
  {
    what: '$elem_match over arrays of two strings of 50',
    filter: { tags: { $elem_match: { $gte: 'tag 2', $lt: 'tag 3' } } },
    keeps: ({ tags }) => tags.some((tag) => tag >= 'tag 2' && tag < 'tag 3'),
    isSlow,
  },
  {
    what: '$prefix of $id',
    filter: { $id: { $prefix: '12' } },
    keeps: (_, row) => String(row).startsWith('12'),
    isSlow,
  },
];

const { values: args } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    out: { type: 'string' },
  },
});
const { rowCount, runCount } = args.full ? FULL : SMOKE;

const documents = createDocuments(rowCount);
const segments = createSegments(documents);
const views = segments.map((segment) => segment.metadataView());
const pool = createThreadPool({
  threadCount: THREADS,
});
const lines: string[] = [];
try {
  for (const { what, filter, keeps, isSlow } of PREDICATES) {
    if (!what.includes(args.only)) continue;
    const node = parseFilter(filter, { limits: DEFAULT_LIMITS, hasText: true });
    const expected = documents.filter(keeps).length;
    const share = isSlow === true ? SLOW_SHARE : 1;
    const oneThread = await measure(expected, share, async () => oneByOne(node));
    const throughPool = await measure(expected, share, () => inPool(node));
    const filters = new FilterCache({ pool, bytesMax: DEFAULT_LIMITS.filterCacheBytesMax });
    const fromCache = await measure(expected, 1, () => cached(filters, node));
    lines.push(`| ${what} | ${expected} | ${oneThread} | ${throughPool} | ${fromCache} |`);
    console.error(lines.at(-1));
  }
} finally {
  await pool.close();
}
const table = [
  `Filter bench, ${args.full ? 'full' : 'smoke'} parameters: ${rowCount} rows in ${segments.length} segments, seed ${SEED}`,
  `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.version}; p50 / p99 of ${runCount} runs in ms`,
  '',
  `| predicate | rows | one thread | with a pool of ${THREADS} | cached |`,
  '| --- | --- | --- | --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

function oneByOne(node: FilterNode): number {
  let count = 0;
  for (const view of views) count += countBits(evaluateFilter(node, view));
  return count;
}

async function inPool(node: FilterNode): Promise<number> {
  let count = 0;
  for (const { rows } of selectRows(pool, node, views)) count += countBits((await rows)!);
  return count;
}

/** Evaluates as a query does: over the views of a snapshot, through the filter cache. */
async function cached(filters: FilterCache, node: FilterNode): Promise<number> {
  const { views } = takeSnapshot(segments, Number.MAX_SAFE_INTEGER);
  return countVisible(await filters.filter(views, node));
}

async function measure(
  expected: number,
  share: number,
  run: () => Promise<number>,
): Promise<string> {
  const milliseconds: number[] = [];
  for (let i = -WARM_UP_RUNS * share; i < runCount * share; i++) {
    const startedAt = performance.now();
    const count = await run();
    if (i >= 0) milliseconds.push(performance.now() - startedAt);
    if (count !== expected) throw new Error(`expected ${expected} rows, found ${count}`);
  }
  milliseconds.sort((a, b) => a - b);
  const at = (share: number) => milliseconds[Math.floor(milliseconds.length * share)]!.toFixed(3);
  return `${at(0.5)} / ${at(0.99)}`;
}

function createDocuments(count: number): Document[] {
  const random = createRandom(SEED);
  return Array.from({ length: count }, (_, i) => ({
    price: Math.floor(random() * 100_000),
    category: `category ${Math.floor(random() * 1_000)}`,
    name: `name ${i}`,
    tags: [`tag ${Math.floor(random() * 50)}`, `tag ${Math.floor(random() * 50)}`],
    ...(random() < 0.5 ? { discount: Math.floor(random() * 100) } : {}),
    title: `Shelf ${(i * 7_919) % 1_000_003}, ${['red', 'green', 'blue'][i % 3]}`,
    created: createdAt(i),
    place: { lat: random() * 180 - 90, lon: random() * 360 - 180 },
  }));
}

/** Returns times every 63 seconds from 2024 on, at three offsets. */
function createdAt(row: number): string {
  const offset = (row % 3) - 1;
  const local = Date.UTC(2024, 0) + row * 63_000 + offset * 3_600_000;
  const zone = offset === 0 ? 'Z' : `${offset < 0 ? '-' : '+'}01:00`;
  return new Date(local).toISOString().slice(0, 19) + zone;
}

/** Returns the angle in radians, by the law of cosines. */
function angleBetween(a: Point, b: Point): number {
  const [latA, latB, east] = [a.lat, b.lat, a.lon - b.lon].map(
    (degrees) => (degrees * Math.PI) / 180,
  );
  const cosine =
    Math.sin(latA!) * Math.sin(latB!) + Math.cos(latA!) * Math.cos(latB!) * Math.cos(east!);
  return Math.acos(cosine);
}

/** Creates a ring around 10° north, 20° east. */
function createCircle(pointCount: number): Point[] {
  return Array.from({ length: pointCount }, (_, i) => {
    const angle = (2 * Math.PI * i) / pointCount;
    return { lat: 10 + 30 * Math.sin(angle), lon: 20 + 50 * Math.cos(angle) };
  });
}

/** The ring is convex and counterclockwise, so a point inside is left of every edge. */
function isInRing(ring: readonly Point[], lat: number, lon: number): boolean {
  return ring.every((from, i) => {
    const to = ring[(i + 1) % ring.length]!;
    return (to.lon - from.lon) * (lat - from.lat) >= (lon - from.lon) * (to.lat - from.lat);
  });
}

function createSegments(rows: readonly Document[]): Segment[] {
  const segments: Segment[] = [];
  for (let start = 0; start < rows.length; start += BATCH_ROWS) {
    const batch = batchOf(
      rows.slice(start, start + BATCH_ROWS).map((document, i) => ({
        id: String(start + i),
        values: [0],
        metadata: JSON.stringify(document),
      })),
    );
    let segment = segments.at(-1);
    if (segment === undefined || segment.isSealed) {
      segment = Segment.createActive({
        key: String(segments.length),
        number: segments.length,
        rowsMax: DEFAULT_LIMITS.segmentRowsMax,
        columnsMax: DEFAULT_LIMITS.metadataColumnsMax,
      });
      segments.push(segment);
    }
    segment.append(batch, 0, batch.count, segments.length);
    if (segment.isFull) segment.seal();
  }
  segments.at(-1)?.seal();
  return segments;
}
