import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SagittaClientError } from '@sagitta/client';
import { vectorOf } from '../src/views/import/cell-values.js';
import { type ConvertedRow, convertRow } from '../src/views/import/convert-row.js';
import { type BatchOptions, batchesOf, type RowBatch } from '../src/views/import/import-batches.js';
import {
  collectionIdOf,
  draftOf,
  type ImportDraft,
  identityOf,
  importKeyOf,
  targetProblem,
  withIdColumn,
} from '../src/views/import/import-draft.js';
import { type ImportPlan, proposePlan } from '../src/views/import/import-plan.js';
import { createImportReader } from '../src/views/import/import-reader.js';
import { Pace } from '../src/views/import/pace.js';
import { openRows } from '../src/views/import/read/open-rows.js';
import type { ReadRow } from '../src/views/import/read/row-source.js';
import {
  BadRowError,
  FIRST_POSITION,
  type ImportEvent,
  type ImportPosition,
  runImport,
} from '../src/views/import/run-import.js';

const row = (cells: Record<string, unknown>): ReadRow => ({ kind: 'row', cells });
const PLAN: ImportPlan = {
  idColumn: 'id',
  vector: { kind: 'column', column: 'values' },
  metadataColumns: ['year', 'metadata'],
};

describe('vectorOf', () => {
  test('reads arrays, typed arrays and text', () => {
    assert.deepEqual(vectorOf([1, 2n]), [1, 2]);
    assert.deepEqual(vectorOf(Float64Array.of(1, 2)), Float64Array.of(1, 2));
    for (const text of ['[0.5, -1e3]', '0.5 -1e3', '0.5;-1e3', '{0.5,-1e3}']) {
      assert.deepEqual(vectorOf(text), [0.5, -1000], text);
    }
  });

  test('reads base64 of float32', () => {
    const bytes = new Uint8Array(Float32Array.of(1, -2).buffer);
    assert.deepEqual(vectorOf(Buffer.from(bytes).toString('base64')), Float32Array.of(1, -2));
  });

  test('is undefined for other text, single numbers and mixed arrays', () => {
    for (const cell of ['a long text', '12', '', [1, 'x'], [], 7, null, { a: 1 }, '0,1 0,2']) {
      assert.equal(vectorOf(cell), undefined, JSON.stringify(cell));
    }
  });
});

describe('proposePlan', () => {
  test('prefers usual names, and takes further columns as metadata', () => {
    const cells = { id: 'a', other: [1, 2], embedding: [3, 4], title: 'x' };
    assert.deepEqual(proposePlan(Object.keys(cells), [row(cells)]), {
      idColumn: 'id',
      vector: { kind: 'column', column: 'embedding' },
      metadataColumns: ['other', 'title'],
    });
  });

  test('finds a column for each value, in the order of their numbers', () => {
    const cells = { d0: '1', d1: '2', d10: '3', d2: '4', year: '2020', d3: '', ...numbered(3, 9) };
    const plan = proposePlan(Object.keys(cells), [row(cells)]);
    assert.deepEqual(plan?.vector, {
      kind: 'columns',
      columns: Array.from({ length: 11 }, (_, at) => `d${at}`),
    });
    assert.deepEqual(plan?.metadataColumns, ['year']);
  });

  function numbered(from: number, to: number): Record<string, string> {
    const names = Array.from({ length: to - from + 1 }, (_, at) => `d${from + at}`);
    return Object.fromEntries(names.map((name) => [name, '0']));
  }

  test('columns with gaps are no vector, nor are vectors of different lengths', () => {
    assert.equal(proposePlan(['d0', 'd2'], [row({ d0: 1, d2: 2 })]), undefined);
    assert.equal(proposePlan(['v'], [row({ v: [1, 2] }), row({ v: [1] })]), undefined);
  });
});

describe('convertRow', () => {
  const convert = (cells: Record<string, unknown>, isText = false) =>
    convertRow(row(cells), PLAN, { dimension: 2, isText });

  test('takes the id, the vector, and the members of metadata with further columns', () => {
    assert.deepEqual(
      convert({ id: 7n, values: [1, 2], year: 2020, metadata: '{"a":{"b":1}}', unused: 1 }),
      { id: '7', values: [1, 2], metadata: { year: 2020, a: { b: 1 } } },
    );
  });

  test('says which column is wrong, what was found and what was expected', () => {
    const problemOf = (cells: Record<string, unknown>) => {
      const converted = convert(cells);
      return 'problem' in converted ? `${converted.column}: ${converted.problem}` : undefined;
    };
    assert.equal(problemOf({ values: [1, 2] }), 'id: found nothing, expected an id');
    assert.equal(problemOf({ id: 'a', values: [1, 2, 3] }), 'values: found 3 values, expected 2');
    assert.equal(
      problemOf({ id: 'a', values: [1, 1e39] }),
      'values: value 2 is 1e+39, expected a float32 number',
    );
    assert.equal(problemOf({ id: 'a', values: 'x' }), 'values: found "x", expected a vector');
    assert.equal(
      problemOf({ id: 'a', values: [1, 2], metadata: '[1]' }),
      'metadata: found "[1]", expected an object or JSON of one',
    );
  });

  test('takes integers of 64 bits as ids, and reads those in JSON text with all digits', () => {
    const metadata = '{"post":1768907725507217523,"posts":[9007199254740994]}';
    for (const id of [9007199254740993n, 2 ** 53 + 2]) {
      assert.deepEqual(convert({ id, values: [1, 2], metadata }), {
        id: String(BigInt(id)),
        values: [1, 2],
        metadata: { post: 1768907725507217523n, posts: [2 ** 53 + 2] },
      });
    }
    assert.ok('problem' in convert({ id: 1.5, values: [1, 2] }));
    assert.ok('problem' in convert({ id: 2 ** 64, values: [1, 2] }));
  });

  test('recognizes the types of text without quotes', () => {
    const yearOf = (text: string, quoted = new Set<string>()) => {
      const cells = { id: 'a', values: '1 2', year: text };
      const options = { dimension: 2, isText: true };
      return (convertRow({ kind: 'row', cells, quoted }, PLAN, options) as ConvertedRow).metadata
        .year;
    };
    assert.equal(yearOf('2020'), 2020);
    assert.equal(yearOf('-1.5e3'), -1500);
    assert.equal(yearOf('true'), true);
    assert.equal(yearOf(''), null);
    assert.equal(yearOf('007'), '007');
    assert.equal(yearOf('12345678901234567890'), 12345678901234567890n);
    assert.equal(yearOf('-9223372036854775808'), -(2 ** 63));
    assert.equal(yearOf('123456789012345678901'), '123456789012345678901');
    assert.equal(yearOf('1e400'), '1e400');
    assert.equal(yearOf('2020', new Set(['year'])), '2020');
  });

  test('keeps what JSON has no number for', () => {
    const metadata = {
      big: 2n ** 60n + 1n,
      huge: 2n ** 64n,
      small: 5n,
      time: new Date(0),
      nan: Number.NaN,
      list: Int32Array.of(1),
      deep: [{ big: 2n ** 60n + 1n }],
    };
    const converted = convert({ id: 'a', values: [1, 2], metadata }) as ConvertedRow;
    assert.deepEqual(converted.metadata, {
      big: 1152921504606846977n,
      huge: '18446744073709551616',
      small: 5,
      time: '1970-01-01T00:00:00.000Z',
      nan: null,
      list: [1],
      deep: [{ big: 1152921504606846977n }],
    });
  });
});

/** NDJSON with `count` rows, of which those in `bad` have vectors of another length. */
function rowsFile(count: number, bad: readonly number[] = []) {
  const lines = Array.from({ length: count }, (_, at) =>
    JSON.stringify({ id: `r${at}`, values: bad.includes(at) ? [1] : [at, 1] }),
  );
  return new File([lines.join('\n')], 'rows.jsonl');
}

const OPTIONS: BatchOptions = {
  plan: { ...PLAN, metadataColumns: [] },
  dimension: 2,
  startRow: 0,
  stopsAtBadRow: false,
};

async function collect(file: File, options: Partial<BatchOptions> = {}): Promise<RowBatch[]> {
  const batches: RowBatch[] = [];
  for await (const batch of batchesOf(await openRows(file), { ...OPTIONS, ...options })) {
    batches.push(batch);
  }
  return batches;
}

describe('batchesOf', () => {
  test('an import that goes on makes the same batches again', async () => {
    const file = rowsFile(25_000, [3, 12_000]);
    const all = await collect(file);
    assert.ok(all.length >= 3);
    const rest = await collect(file, { startRow: all[0]!.endRow });
    assert.deepEqual(
      rest.map(({ rowNumbers }) => rowNumbers),
      all.slice(1).map(({ rowNumbers }) => rowNumbers),
    );
  });

  test('bad rows are numbered from 1, with their value', async () => {
    const [batch] = await collect(rowsFile(5, [1]));
    assert.deepEqual(batch!.badRows, [
      { row: 2, column: 'values', problem: 'found 1 values, expected 2', value: '[1]' },
    ]);
    assert.deepEqual(batch!.rowNumbers, [0, 2, 3, 4]);
  });

  test('stops at the first bad row, at which it may go on', async () => {
    const batches = await collect(rowsFile(5, [2, 3]), { stopsAtBadRow: true });
    assert.equal(batches.length, 1);
    assert.equal(batches[0]!.endRow, 2);
    assert.equal(batches[0]!.rows.length, 2);
    assert.equal(batches[0]!.badRows.length, 1);
  });
});

interface Write {
  readonly key: string;
  readonly byteCount: number;
}

/** Runs an import against a server that answers each write with the next of `replies`, then accepts. */
async function importWith(
  file: File,
  replies: readonly (Error | undefined)[],
  { skipsBadRows = false, position = FIRST_POSITION } = {},
) {
  const reader = createImportReader();
  await reader.open(file);
  const startRow = position.endRow;
  await reader.start({ ...OPTIONS, startRow, stopsAtBadRow: !skipsBadRows });
  const writes: Write[] = [];
  const waits: number[] = [];
  const events: ImportEvent[] = [];
  const target = {
    async write(bytes: Uint8Array, { idempotencyKey: key }: { idempotencyKey: string }) {
      const reply = replies[writes.length];
      writes.push({ key, byteCount: bytes.byteLength });
      if (reply !== undefined) throw reply;
    },
    async wait(ms: number) {
      waits.push(ms);
    },
  };
  const onEvent = (event: ImportEvent) => events.push(event);
  const options = { position, key: 'k', skipsBadRows, onEvent };
  const result = await runImport(reader, target, options).then(
    (end): ImportPosition | Error => end,
    (error: Error) => error,
  );
  return { result, writes, waits, events };
}

function rejection(row: number, committedCount: number) {
  const detail = 'The metadata does not fit.';
  const items = [{ pointer: `/rows/${row}/metadata`, code: 'invalid_metadata', detail } as const];
  return new SagittaClientError('invalid_metadata', detail, { status: 400, items, committedCount });
}

describe('runImport', () => {
  test('sends every batch under a key of its own', async () => {
    const { result, writes } = await importWith(rowsFile(25_000), []);
    assert.deepEqual(result, { endRow: 25_000, batch: 3, writtenCount: 25_000, badCount: 0 });
    assert.deepEqual(
      writes.map(({ key }) => key),
      ['k-0-0', 'k-1-0', 'k-2-0'],
    );
  });

  test('waits for a server that is away, longer each time, and sends the same batch again', async () => {
    const lost = new SagittaClientError('network_error', 'lost');
    const busy = new SagittaClientError('overloaded', 'busy', { status: 503, retryAfterMs: 50 });
    const { result, writes, waits, events } = await importWith(rowsFile(10), [lost, lost, busy]);
    assert.equal('endRow' in result && result.writtenCount, 10);
    assert.deepEqual(waits, [1_000, 2_000, 50]);
    assert.deepEqual(new Set(writes.map(({ key }) => key)), new Set(['k-0-0']));
    assert.equal(events.filter(({ kind }) => kind === 'waiting').length, 3);
  });

  test('goes on at its position with the keys that follow', async () => {
    const position = { endRow: 10_000, batch: 1, writtenCount: 10_000, badCount: 0 };
    const { result, writes } = await importWith(rowsFile(15_000), [], { position });
    assert.deepEqual(result, { endRow: 15_000, batch: 2, writtenCount: 15_000, badCount: 0 });
    assert.deepEqual(
      writes.map(({ key }) => key),
      ['k-1-0'],
    );
  });

  test('stops at a row that the server rejects, and stays before its batch', async () => {
    const { result, events } = await importWith(rowsFile(10), [rejection(4, 2)]);
    assert.ok(result instanceof BadRowError);
    assert.deepEqual(result.badRow, {
      row: 5,
      column: undefined,
      problem: 'metadata: The metadata does not fit.',
      value: '"r4"',
    });
    assert.deepEqual(events, []);
  });

  test('leaves out the rows that the server rejects, and those that are written', async () => {
    const { result, writes } = await importWith(rowsFile(10, [9]), [rejection(4, 2)], {
      skipsBadRows: true,
    });
    assert.deepEqual(result, { endRow: 10, batch: 1, writtenCount: 8, badCount: 2 });
    assert.deepEqual(
      writes.map(({ key }) => key),
      ['k-0-0', 'k-0-1'],
    );
    assert.ok(writes[1]!.byteCount < writes[0]!.byteCount);
  });

  test('writes the rows before a bad row of the file, then stops', async () => {
    const { result, events } = await importWith(rowsFile(10, [6]), []);
    assert.ok(result instanceof BadRowError);
    assert.equal(result.message, 'row 7: found 1 values, expected 2');
    // The bad row is not done: an import that goes on reads it again.
    const position = { endRow: 6, batch: 1, writtenCount: 6, badCount: 0 };
    assert.deepEqual(events, [{ kind: 'progress', position, badRows: [], share: 1 }]);
  });

  test('throws refusals that are not about rows', async () => {
    const refusal = new SagittaClientError('insufficient_scope', 'no', { status: 403 });
    assert.equal((await importWith(rowsFile(3), [refusal])).result, refusal);
  });
});

describe('the draft', () => {
  const file = { name: 'a b.ndjson', size: 10, lastModified: 5 };
  const draft: ImportDraft = {
    plan: PLAN,
    dimension: 2,
    isNew: true,
    collectionId: 'a-b',
    metric: 'cosine',
    mode: 'upsert',
    skipsBadRows: false,
  };

  test('names the collection after the file', () => {
    assert.equal(collectionIdOf('a b.ndjson'), 'a-b');
    assert.equal(collectionIdOf('vectors.v2.tar.parquet'), 'vectors.v2');
    assert.equal(collectionIdOf('…'), 'import');
  });

  test('a column that is no longer the ids becomes metadata', () => {
    const columns = ['id', 'values', 'year'];
    assert.deepEqual(withIdColumn(draft, columns, 'year').plan.metadataColumns, ['id']);
    assert.deepEqual(withIdColumn(draft, columns, undefined).plan.metadataColumns, ['id', 'year']);
  });

  test('says why the import cannot start', () => {
    const target = { id: 'a-b', dimension: 3 } as Parameters<typeof targetProblem>[1][number];
    assert.equal(targetProblem(draft, []), undefined);
    assert.match(targetProblem(draft, [target])!, /already/);
    assert.match(targetProblem({ ...draft, isNew: false }, [target])!, /2 values.*has 3/);
    assert.match(targetProblem({ ...draft, isNew: false }, [])!, /Choose/);
    const plan = { ...PLAN, idColumn: undefined };
    assert.match(targetProblem({ ...draft, mode: 'update', plan }, [])!, /ids/);
  });

  test('is undefined without vectors', async () => {
    const reader = createImportReader();
    const preview = await reader.open(new File(['a,b\nx,y\n'], 'a.csv'));
    assert.equal(draftOf('a.csv', preview), undefined);
  });

  test('keys and names differ where the file, the choices or the run do', () => {
    const keys = [
      importKeyOf(file, draft, '1'),
      importKeyOf(file, draft, '2'),
      importKeyOf({ ...file, lastModified: 6 }, draft, '1'),
      importKeyOf(file, { ...draft, skipsBadRows: true }, '1'),
    ];
    assert.equal(new Set(keys).size, keys.length);
    assert.equal(importKeyOf(file, draft, '1'), keys[0]);
    assert.notEqual(identityOf(file, 'http://a'), identityOf(file, 'http://b'));
  });
});

test('the pace is that since the first batch', () => {
  let nowMs = 0;
  const pace = new Pace(() => nowMs);
  const at = (endRow: number) => ({ ...FIRST_POSITION, endRow });
  nowMs = 60_000;
  assert.deepEqual(pace.add(at(100), 0.5), { rowsPerSecond: undefined, secondsLeft: undefined });
  nowMs = 62_000;
  assert.deepEqual(pace.add(at(300), 0.75), { rowsPerSecond: 100, secondsLeft: 2 });
});
