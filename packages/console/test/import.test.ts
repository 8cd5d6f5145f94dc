import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SagittaClientError } from '@sagitta/client';
import {
  type ImportBatch,
  type ImportBatchOptions,
  importBatches,
  openFile,
} from '../src/views/import/import-batches.js';
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
import {
  BadRowError,
  type BatchProgress,
  FIRST_PROGRESS,
  type ImportEvent,
  runImport,
} from '../src/views/import/run-import.js';

const PLAN: ImportPlan = {
  idColumn: 'id',
  vector: { kind: 'column', column: 'values' },
  metadataColumns: ['year', 'metadata'],
};

describe('proposePlan', () => {
  test('prefers usual names, and takes other columns as metadata', () => {
    const cells = { id: 'a', other: [1, 2], embedding: [3, 4], title: 'x' };
    assert.deepEqual(proposePlan({ columns: Object.keys(cells), rows: [cells] }), {
      idColumn: 'id',
      vector: { kind: 'column', column: 'embedding' },
      metadataColumns: ['other', 'title'],
    });
  });

  test('finds vectors with one column per value, in numeric order', () => {
    const cells = { d0: '1', d1: '2', d10: '3', d2: '4', year: '2020', d3: '', ...numbered(3, 9) };
    const plan = proposePlan({ columns: Object.keys(cells), rows: [cells] });
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

  test('takes the column with most words if there are no vectors', () => {
    const cells = { id: 'n-1', lemma: 'tiger', code: 'AAAA/z8+bcd=', gloss: 'a large feline' };
    const plan = proposePlan({ columns: Object.keys(cells), rows: [cells] });
    assert.deepEqual(plan, {
      idColumn: 'id',
      vector: { kind: 'text', column: 'gloss' },
      metadataColumns: ['lemma', 'code', 'gloss'],
    });
    assert.equal(proposePlan({ columns: ['code'], rows: [{ code: cells.code }] }), undefined);
    const found = proposePlan({ columns: ['gloss', 'v'], rows: [{ gloss: 'a b', v: [1, 2] }] });
    assert.deepEqual(found?.vector, { kind: 'column', column: 'v' });
  });

  test('numbered columns with gaps and vectors of different lengths are not proposed', () => {
    assert.equal(proposePlan({ columns: ['d0', 'd2'], rows: [{ d0: 1, d2: 2 }] }), undefined);
    assert.equal(proposePlan({ columns: ['v'], rows: [{ v: [1, 2] }, { v: [1] }] }), undefined);
  });
});

/** NDJSON with `count` rows; the vectors of those in `bad` have the wrong length. */
function rowsFile(count: number, bad: readonly number[] = []) {
  const lines = Array.from({ length: count }, (_, at) =>
    JSON.stringify({ id: `r${at}`, values: bad.includes(at) ? [1] : [at, 1] }),
  );
  return new File([lines.join('\n')], 'rows.jsonl');
}

const OPTIONS: ImportBatchOptions = {
  plan: { ...PLAN, metadataColumns: [] },
  dimension: 2,
  startRow: 0,
  stopsAtBadRow: false,
};

async function collect(
  file: File,
  options: Partial<ImportBatchOptions> = {},
): Promise<ImportBatch[]> {
  const batches: ImportBatch[] = [];
  for await (const batch of importBatches(await openFile(file), { ...OPTIONS, ...options })) {
    batches.push(batch);
  }
  return batches;
}

describe('importBatches', () => {
  test('a continued import produces the same batches again', async () => {
    const file = rowsFile(25_000, [3, 12_000]);
    const all = await collect(file);
    assert.ok(all.length >= 3);
    const rest = await collect(file, { startRow: all[0]!.rows.endRow });
    assert.deepEqual(rest.map(rowNumbers), all.slice(1).map(rowNumbers));
  });

  test('bad rows are left out and reported', async () => {
    const [batch] = await collect(rowsFile(5, [1]));
    assert.deepEqual(batch!.badRows, [{ row: 1, problem: 'found 1 values, expected 2' }]);
    assert.deepEqual(rowNumbers(batch!), [0, 2, 3, 4]);
  });

  test('stops at the first bad row, from which it can continue', async () => {
    const batches = await collect(rowsFile(5, [2, 3]), { stopsAtBadRow: true });
    assert.equal(batches.length, 1);
    assert.equal(batches[0]!.rows.endRow, 2);
    assert.equal(batches[0]!.rows.rowCount, 2);
    assert.equal(batches[0]!.badRows.length, 1);
  });
});

const rowNumbers = ({ rows }: ImportBatch) =>
  Array.from({ length: rows.rowCount }, (_, row) => rows.fileRow(row));

interface Write {
  readonly key: string;
  readonly byteCount: number;
}

/** Runs an import against a server that answers each write with the next of `replies`, then accepts. */
async function importWith(
  file: File,
  replies: readonly (Error | undefined)[],
  { skipsBadRows = false, progress = FIRST_PROGRESS } = {},
) {
  const reader = createImportReader();
  await reader.open(file);
  const startRow = progress.endRow;
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
  const options = { progress, key: 'k', skipsBadRows, onEvent };
  const result = await runImport(reader, target, options).then(
    (end): BatchProgress | Error => end,
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
  test('sends every batch under its own key', async () => {
    const { result, writes } = await importWith(rowsFile(25_000), []);
    assert.deepEqual(result, { endRow: 25_000, batch: 3, writtenCount: 25_000, badCount: 0 });
    assert.deepEqual(
      writes.map(({ key }) => key),
      ['k-0-0', 'k-1-0', 'k-2-0'],
    );
  });

  test('waits for an unavailable server with growing delays, and resends the same batch', async () => {
    const lost = new SagittaClientError('network_error', 'lost');
    const busy = new SagittaClientError('overloaded', 'busy', { status: 503, retryAfterMs: 50 });
    const { result, writes, waits, events } = await importWith(rowsFile(10), [lost, lost, busy]);
    assert.equal('endRow' in result && result.writtenCount, 10);
    assert.deepEqual(waits, [1_000, 2_000, 50]);
    assert.deepEqual(new Set(writes.map(({ key }) => key)), new Set(['k-0-0']));
    assert.equal(events.filter(({ kind }) => kind === 'waiting').length, 3);
  });

  test('continues with the following keys', async () => {
    const progress = { endRow: 10_000, batch: 1, writtenCount: 10_000, badCount: 0 };
    const { result, writes } = await importWith(rowsFile(15_000), [], { progress });
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
      row: 4,
      problem: 'r4: metadata: The metadata does not fit.',
    });
    assert.deepEqual(events, []);
  });

  test('resends a batch without the rejected and the written rows', async () => {
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
    // The bad row is not done, so a continued import reads it again.
    const progress = { endRow: 6, batch: 1, writtenCount: 6, badCount: 0 };
    assert.deepEqual(events, [{ kind: 'progress', progress, badRows: [], share: 1 }]);
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
    const texts = { ...draft, isNew: false, dimension: undefined };
    assert.match(targetProblem(texts, [target])!, /no model/);
    const embed = { endpoint: 'builtin', model: 'm', sends_dimension: false };
    assert.equal(targetProblem(texts, [{ ...target, embed }]), undefined);
  });

  test('is undefined without vectors and texts', async () => {
    const reader = createImportReader();
    const preview = await reader.open(new File(['a,b\n1,2\n'], 'a.csv'));
    assert.equal(draftOf('a.csv', preview), undefined);
  });

  test('keys and names depend on the file, the choices and the run', () => {
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

test('the pace is measured from the first batch on', () => {
  let nowMs = 0;
  const pace = new Pace(() => nowMs);
  const at = (endRow: number) => ({ ...FIRST_PROGRESS, endRow });
  nowMs = 60_000;
  assert.deepEqual(pace.add(at(100), 0.5), { rowsPerSecond: undefined, secondsLeft: undefined });
  nowMs = 62_000;
  assert.deepEqual(pace.add(at(300), 0.75), { rowsPerSecond: 100, secondsLeft: 2 });
});
