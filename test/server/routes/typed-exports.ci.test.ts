// Exports with metadata as typed columns equal a model that knows only the JSON texts, whether or not segments have
// columns for the paths. SAGITTA_TEST_PYTHON names an interpreter with pyarrow, polars and duckdb.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { DataType, type Field, tableFromIPC } from 'apache-arrow';
import { flattenMetadata } from '../../../src/common/metadata-path.js';
import type { JsonObject } from '../../../src/common/types.js';
import { createRandom, testSeed } from '../../database/harness.js';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';

const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
const hasModules = spawnSync(python, ['-c', 'import pyarrow, polars, duckdb']).status === 0;
const skip = hasModules
  ? false
  : `${python} has no pyarrow, polars or duckdb; SAGITTA_TEST_PYTHON names one that has`;

const seed = testSeed();
console.log(`SAGITTA_TEST_SEED=${seed}`);

/** Prints the common content of Parquet and Arrow; fails if readers differ. */
const SCRIPT = `
import json, sys
import duckdb, polars, pyarrow, pyarrow.parquet
arrow, parquet = sys.argv[1:3]
stream = pyarrow.ipc.open_stream(open(arrow, "rb")).read_all()
stream.validate(full=True)
file = pyarrow.parquet.read_table(parquet)
file.validate(full=True)
assert file.schema.equals(stream.schema), (file.schema, stream.schema)
expected = stream.to_pydict()
assert file.to_pydict() == expected
assert polars.read_parquet(parquet).to_dict(as_series=False) == expected
relation = duckdb.sql("select * from read_parquet('%s')" % parquet)
rows = relation.fetchall()
# DuckDB compares names without case, and so renames some.
assert [[row[i] for row in rows] for i in range(len(relation.columns))] == list(expected.values())
def cell(value):
    if isinstance(value, list): return [cell(each) for each in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
print(json.dumps({
    "types": {field.name: str(field.type) for field in stream.schema},
    "columns": {name: [cell(value) for value in column] for name, column in expected.items()},
}))
`;

/** Integers are decimal text, which neither JSON nor JavaScript rounds. */
type Cell = number | string | boolean | null | readonly Cell[];

interface Typed {
  readonly types: Readonly<Record<string, string>>;
  readonly columns: Readonly<Record<string, readonly Cell[]>>;
}

/** The JSON text of each value, nested like the document. */
interface Texts {
  readonly [name: string]: string | Texts;
}

interface Row {
  readonly id: string;
  readonly texts: Texts;
}

describe('an export with typed columns', () => {
  for (const columnsMax of ['256', '3']) {
    it(`equals the model where segments have ${columnsMax} columns`, async () => {
      const server = await startTestServer({
        SAGITTA_SEGMENT_ROWS_MAX: '512',
        SAGITTA_METADATA_COLUMNS_MAX: columnsMax,
      });
      try {
        for (let round = 0; round < 3; round++) {
          const random = createRandom(seed + round);
          const id = `c${round}`;
          const rows = await fill(server, id, random);
          for (const filter of [undefined, { keep: true }]) {
            const kept = rows.filter(({ texts }) => filter === undefined || texts.keep === 'true');
            const query = `include_values=false${filterQuery(filter)}`;
            const found = typedOfArrow(await exported(server, id, `format=arrow&${query}`));
            assert.deepEqual(found, modelOf(kept), `seed ${seed}, round ${round}`);
          }
        }
      } finally {
        await server.close();
      }
    });
  }

  it('reads in pyarrow, Polars and DuckDB as the model', { skip }, async () => {
    const server = await startTestServer({ SAGITTA_SEGMENT_ROWS_MAX: '512' });
    const folder = mkdtempSync(join(tmpdir(), 'sagitta-typed-'));
    try {
      const rows = await fill(server, 'c', createRandom(seed));
      const paths: string[] = [];
      for (const format of ['arrow', 'parquet']) {
        const path = join(folder, format);
        writeFileSync(path, await exported(server, 'c', `format=${format}&include_values=false`));
        paths.push(path);
      }
      const options = { encoding: 'utf8', maxBuffer: 2 ** 28 } as const;
      const run = spawnSync(python, ['-c', SCRIPT, ...paths], options);
      assert.equal(run.status, 0, run.stderr);
      assert.deepEqual(JSON.parse(run.stdout), modelOf(rows));
    } finally {
      rmSync(folder, { recursive: true });
      await server.close();
    }
  });

  it('is refused beyond 1 024 columns, counted over the rows that pass the filter', async () => {
    const server = await startTestServer();
    try {
      const nested = Object.fromEntries(Array.from({ length: 1_024 }, (_, i) => [`p${i}`, '1']));
      await create(server, 'wide', [
        { id: 'a', texts: { ...nested, o: {} } },
        { id: 'b', texts: { other: '1' } },
      ]);
      const refused = await fetch(`${server.url}/v1/collections/wide/export?metadata=columns`);
      assert.equal(refused.status, 400);
      const { code, detail } = (await refused.json()) as { code: string; detail: string };
      assert.equal(code, 'limit_exceeded');
      assert.match(detail, /at most 1024 paths.*filter/);
      const filter = filterQuery({ other: { $exists: false } });
      const all = typedOfArrow(await exported(server, 'wide', `include_values=false${filter}`));
      assert.equal(Object.keys(all.columns).length, 1_025);
    } finally {
      await server.close();
    }
  });
});

function filterQuery(filter: JsonObject | undefined): string {
  return filter === undefined ? '' : `&filter=${encodeURIComponent(JSON.stringify(filter))}`;
}

async function exported(server: TestServer, id: string, query: string): Promise<Buffer> {
  const url = `${server.url}/v1/collections/${id}/export?metadata=columns&${query}`;
  const reply = await fetch(url);
  const bytes = Buffer.from(await reply.arrayBuffer());
  assert.equal(reply.status, 200, bytes.toString().slice(0, 500));
  return bytes;
}

async function create(server: TestServer, id: string, rows: readonly Row[]): Promise<void> {
  const send = async (path: string, body: string) => {
    const headers = { 'content-type': 'application/json' };
    const reply = await fetch(`${server.url}/v1${path}`, { method: 'POST', headers, body });
    assert.equal(reply.status, 200, await reply.text());
  };
  const definition = { id, dimension: 1, metric: 'dot' };
  await send('/collections?if_not_exists=true', JSON.stringify(definition));
  for (let at = 0; at < rows.length; at += 500) {
    const vectors = rows
      .slice(at, at + 500)
      .map((row) => `{"id":"${row.id}","values":[1],"metadata":${textOf(row.texts)}}`);
    await send(`/collections/${id}/vectors`, `{"vectors":[${vectors}]}`);
  }
}

/** Rows in several segments, some of them rewritten, in the order of arrival. */
async function fill(server: TestServer, id: string, random: () => number): Promise<Row[]> {
  const makeTexts = createTexts(random);
  const rowOf = (n: number): Row => ({ id: `v${n}`, texts: makeTexts(n < 250) });
  const rows = Array.from({ length: 900 }, (_, n) => rowOf(n));
  await create(server, id, rows);
  const again = Array.from({ length: 30 }, (_, n) => rowOf(n * 7));
  await create(server, id, again);
  const moved = new Set(again.map((row) => row.id));
  return [...rows.filter((row) => !moved.has(row.id)), ...again];
}

const WORDS = ['""', '"a"', '"ä☃"', '"x \\"y\\" \\u00e4"', '"null"', '"[1]"', '"\\n"', '"𝄞"'];
const INTEGERS = ['0', '-0', '7', '-3', '1.0', '1e2', '9007199254740991'];
const WIDE = ['9007199254740993', '-9223372036854775808', '9223372036854775807', '12'];
const TOO_WIDE = ['9223372036854775808', '-9223372036854775809', '9007199254740993', '3'];
const POWERS = ['1e19', '9007199254740993', '-1e30'];
const WHOLE_DECIMALS = ['1e17', '9007199254740993.0', '-4.5e18', '6'];
const FRACTIONS = ['0.1', '-2.5e-7', '1', '9007199254740993.0', '1e300'];
const BOOLEANS = ['true', 'false'];

/**
 * Documents with a path for each kind of values, and with names that may collide; with `isEarly`, also paths that no
 * later segment has.
 */
function createTexts(random: () => number): (isEarly: boolean) => Texts {
  const oneOf = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(random() * values.length)]!;
  const listOf = (values: readonly string[]) =>
    `[${Array.from({ length: Math.floor(random() * 4) }, () => oneOf([...values, 'null'])).join(', ')}]`;
  const choices = [WORDS, INTEGERS, WIDE, TOO_WIDE, POWERS, WHOLE_DECIMALS, FRACTIONS, BOOLEANS];
  const kinds: (() => string | Texts)[] = [
    ...choices.map((values) => () => oneOf(values)),
    ...choices.map((values) => () => listOf(values)),
    () => oneOf([...WORDS, ...INTEGERS]),
    () => oneOf(['[]', '[null]']),
    () => listOf([...WORDS, ...BOOLEANS]),
    () => oneOf(['[[1, 2]]', '[{"a": 1.0}]', '[]']),
    () => ({ p: oneOf(INTEGERS), 'q.r': oneOf(WORDS), q: { r: 'true' } }),
    () => oneOf<string | Texts>([{ p: '1.50' }, '2', '"x"']),
  ];
  const names = ['id', 'values', 'metadata', 'vectors.v', 'a', 'a.b', 'A', 'ä "', 'n', 'm', 'o'];
  const paths = [
    ...kinds.map((make, i) => ({ name: `k${i}`, make })),
    ...names.map((name) => ({ name, make: oneOf(kinds) })),
  ];
  return (isEarly) => {
    const texts: Record<string, string | Texts> = { keep: oneOf(BOOLEANS) };
    if (isEarly) for (const [i, make] of kinds.entries()) texts[`early${i}`] = make();
    for (const { name, make } of paths) {
      if (random() < 0.7) texts[name] = random() < 0.1 ? 'null' : make();
    }
    if (random() < 0.3) texts.metadata = { id: '5' };
    return texts;
  };
}

function textOf(value: string | Texts): string {
  if (typeof value === 'string') return value;
  const members = Object.entries(value).map(
    ([name, each]) => `${JSON.stringify(name)}: ${textOf(each)}`,
  );
  return `{${members.join(' ,')}}`;
}

function modelOf(rows: readonly Row[]): Typed {
  const texts = rows.map((row) => {
    const found = new Map<string, string>();
    flattenMetadata(row.texts as JsonObject, (path, value) =>
      found.set(path, textOf(value as string | Texts)),
    );
    return found;
  });
  const types: Record<string, string> = { id: 'string' };
  const columns: Record<string, readonly Cell[]> = { id: rows.map(({ id }) => id) };
  for (const path of [...new Set(texts.flatMap((found) => [...found.keys()]))].sort()) {
    const cells = texts.map((found) => found.get(path) ?? 'null');
    const type = typeOfTexts(cells);
    if (type === null) continue;
    const isOther = /^(id|values|metadata|vectors\..*|metadata\..*)$/.test(path);
    const name = isOther ? `metadata.${path}` : path;
    types[name] = type === 'json' ? 'string' : type;
    columns[name] = cells.map((text) => cellOf(text, type));
  }
  return { types, columns };
}

/** The type in pyarrow's notation, or `json`; null if all values are objects. */
function typeOfTexts(texts: readonly string[]): string | null {
  const values = texts.filter((text) => text !== 'null');
  if (values.length === 0) return 'string';
  if (values.every((text) => text.startsWith('{'))) return null;
  if (!values.every((text) => text.startsWith('['))) return scalarTypeOf(values);
  const elements = values.flatMap(elementsOf).filter((text) => text !== 'null');
  const element = elements.length === 0 ? 'string' : scalarTypeOf(elements);
  return element === 'json' ? 'json' : `list<item: ${element}>`;
}

function scalarTypeOf(texts: readonly string[]): string {
  if (texts.every((text) => text.startsWith('"'))) return 'string';
  if (texts.every((text) => BOOLEANS.includes(text))) return 'bool';
  if (!texts.every((text) => /^[-\d]/.test(text))) return 'json';
  return texts.every((text) => integerOf(text) !== null) ? 'int64' : 'double';
}

/** Null for values that are not 64-bit integers. A decimal is the nearest float64. */
function integerOf(text: string): bigint | null {
  const isInteger = /^-?\d+$/.test(text);
  if (!isInteger && !Number.isInteger(Number(text))) return null;
  const value = BigInt(isInteger ? text : Number(text));
  return BigInt.asIntN(64, value) === value ? value : null;
}

/** Lists have a comma and a blank between elements, which do not contain them. */
function elementsOf(list: string): string[] {
  if (list.startsWith('[[') || list.startsWith('[{')) return ['[]'];
  return list === '[]' ? [] : list.slice(1, -1).split(', ');
}

function cellOf(text: string, type: string): Cell {
  if (text === 'null') return null;
  if (type.startsWith('list')) {
    const elementType = type.slice('list<item: '.length, -1);
    return elementsOf(text).map((element) => cellOf(element, elementType));
  }
  if (type === 'int64') return String(integerOf(text));
  if (type === 'double') return Number(text);
  if (type === 'bool') return text === 'true';
  return type === 'json' ? text : (JSON.parse(text) as string);
}

function typedOfArrow(bytes: Uint8Array): Typed {
  const table = tableFromIPC(bytes);
  const types: Record<string, string> = {};
  const columns: Record<string, readonly Cell[]> = {};
  for (const field of table.schema.fields) {
    types[field.name] = typeNameOf(field);
    columns[field.name] = [...table.getChild(field.name)!].map(plainCell);
  }
  return { types, columns };
}

function typeNameOf({ type }: Field): string {
  if (DataType.isUtf8(type)) return 'string';
  if (DataType.isBool(type)) return 'bool';
  if (DataType.isInt(type)) return `int${type.bitWidth}`;
  if (DataType.isFloat(type)) return 'double';
  return `list<item: ${typeNameOf(type.children[0]!)}>`;
}

function plainCell(value: unknown): Cell {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value as Cell;
  return [...(value as Iterable<unknown>)].map(plainCell);
}
