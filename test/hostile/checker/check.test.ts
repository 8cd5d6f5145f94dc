// The checker itself: it accepts correct histories, even with writes of unknown outcome, and reports each kind of
// anomaly planted in them.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkHistory } from './check.js';
import {
  createHistory,
  type Fault,
  type History,
  type Outcome,
  type WriteRecord,
} from './history.js';
import {
  applyEffect,
  type Change,
  effectOf,
  nearest,
  type Row,
  rowsOf,
  type StoredRow,
} from './model.js';
import {
  explainCount,
  explainCounts,
  explainFetch,
  explainList,
  explainQuery,
  explainRefusal,
} from './reads.js';
import { placeWithin } from './streams.js';

const FILTER = { kind: 'tag', tag: 'red' } as const;

const rowOf = (id: string, w: string, tag = 'red'): Row => ({
  id,
  values: [1, id.charCodeAt(0) % 5, 2],
  metadata: { w, tag, n: 1 },
});

/** A history as if clients had sent one request after another, a millisecond each. */
class Story {
  readonly history: History = createHistory('c', 'dot');
  readonly state = new Map<string, StoredRow>();
  now = 0;
  sequence = 0;
  #writes = 0;

  /** The write takes effect and is acknowledged unless the options say otherwise. */
  write(change: Change, options: { outcome?: Outcome; hasEffect?: boolean } = {}): WriteRecord {
    const { hasEffect = true } = options;
    const tag = `w${++this.#writes}`;
    const effect = effectOf(this.state, change);
    if (hasEffect) applyEffect(this.state, effect, ++this.sequence);
    const counts = effect.kind === 'refused' ? {} : effect.counts;
    const acknowledged = { kind: 'acknowledged', sequence: this.sequence, counts } as const;
    const record: WriteRecord = {
      tag,
      title: tag,
      change,
      startedAt: ++this.now,
      endedAt: ++this.now,
      outcome: options.outcome ?? acknowledged,
      after: null,
    };
    this.history.writes.push(record);
    return record;
  }

  upsert(ids: readonly string[], options: Parameters<Story['write']>[1] = {}): WriteRecord {
    const w = `w${this.#writes + 1}`;
    const rows = ids.map((id) => rowOf(id, w));
    return this.write({ kind: 'write', mode: 'upsert', rows }, options);
  }

  read(
    title: string,
    explain: History['reads'][number]['explain'],
    sequence: number | null = null,
    asked: Pick<History['reads'][number], 'node' | 'mayLag' | 'minSequence'> = {},
  ): void {
    const times = { startedAt: ++this.now, endedAt: ++this.now };
    this.history.reads.push({ title, explain, sequence, seen: [], ...asked, ...times });
  }

  /** Reads rows as they are in this state. */
  fetch(ids: readonly string[], state: ReadonlyMap<string, StoredRow> = this.state): void {
    const vectors = ids.flatMap((id) => state.get(id) ?? []).map(shown);
    const missing = ids.filter((id) => !state.has(id));
    this.read(`fetch ${ids}`, explainFetch(ids, { vectors, not_found: missing }));
  }

  dump(state: ReadonlyMap<string, StoredRow> = this.state, sequence = this.sequence): void {
    const at = ++this.now;
    this.history.dumps.push({ title: `dump ${at}`, at, sequence, rows: rowsOf(state, null) });
  }

  copy(): Map<string, StoredRow> {
    return new Map(this.state);
  }

  faults(): readonly Fault[] {
    return checkHistory(this.history);
  }
}

const shown = ({ id, values, metadata, sequence }: StoredRow) => ({
  id,
  values,
  metadata,
  sequence,
});

/** Fails unless the checker reports such a fault. */
function assertFault(story: Story, kind: Fault['kind'], detail: RegExp): void {
  const faults = story.faults();
  const found = faults.some((fault) => fault.kind === kind && detail.test(fault.detail));
  assert.ok(found, `expected ${kind}: ${detail}; found ${JSON.stringify(faults, null, 1)}`);
}

describe('the checker accepts', () => {
  it('a history in which every reply is right', () => {
    const story = new Story();
    story.upsert(['a', 'b']);
    story.fetch(['a', 'b', 'x']);
    story.write({ kind: 'patch', id: 'a', patch: { w: 'w2', tag: 'blue' } });
    story.read('count', explainCount(FILTER, 1));
    story.write({ kind: 'deleteWhere', filter: FILTER });
    const change = { kind: 'write', mode: 'insert', rows: [rowOf('a', 'w4')] } as const;
    const refusal = explainRefusal(change, 'vector_exists', ['/vectors/0/id']);
    story.write(change, { outcome: { kind: 'none' }, hasEffect: false });
    story.read('insert', refusal);
    story.dump();
    assert.deepEqual(story.faults(), []);
  });

  it('writes of unknown outcome that took effect, and others that did not', () => {
    const story = new Story();
    story.upsert(['a']);
    const unknown = { kind: 'unknown' } as const;
    story.write({ kind: 'delete', ids: ['a'] }, { outcome: unknown });
    story.fetch(['a']);
    story.upsert(['b'], { outcome: unknown, hasEffect: false });
    story.upsert(['c'], { outcome: unknown });
    story.write({ kind: 'deleteOne', id: 'c' }, { outcome: unknown });
    story.dump();
    assert.deepEqual(story.faults(), []);
  });

  it('a concurrent read and write, whether or not the read sees the write', () => {
    const story = new Story();
    story.upsert(['a']);
    const before = story.copy();
    const write = story.upsert(['a', 'b']);
    for (const state of [before, story.copy()]) {
      story.now = write.startedAt;
      story.fetch(['a', 'b'], state);
      story.now = write.endedAt;
    }
    const reads = story.history.reads.map((read) => ({
      ...read,
      startedAt: write.startedAt,
      endedAt: write.endedAt,
    }));
    story.history.reads.splice(0, 2, ...reads);
    story.dump();
    assert.deepEqual(story.faults(), []);
  });

  it('a node of a cluster that has not heard of what another one has acknowledged', () => {
    const story = new Story();
    story.upsert(['a']).node = 'n1';
    story.read('default', () => null, 0, { node: 'n2', mayLag: true });
    const empty = explainFetch(['a'], { vectors: [], not_found: ['a'] });
    story.read('without a sequence', empty, null, { node: 'n2', mayLag: true });
    story.dump();
    assert.deepEqual(story.faults(), []);
  });

  it('an unknown write where only a read without a sequence tells which one it was', () => {
    const story = new Story();
    story.upsert(['a', 'b']);
    const unknown = { kind: 'unknown' } as const;
    const start = story.now;
    // Either order of the two leads to the dump; the read saw the second one first.
    const first = story.write({ kind: 'delete', ids: ['b'] }, { outcome: unknown });
    story.fetch(['a', 'b']);
    const second = story.write({ kind: 'delete', ids: ['a'] }, { outcome: unknown });
    story.dump();
    const long = { startedAt: start, endedAt: story.now - 1 };
    story.history.writes.splice(1, 2, { ...second, ...long }, { ...first, ...long });
    assert.deepEqual(story.faults(), []);
  });
});

describe('the checker tells by', () => {
  it('the counts of a stream where a delete without a reply was', () => {
    const story = new Story();
    story.upsert(['a', 'z']);
    const unknown = { kind: 'unknown' } as const;
    const start = story.now;
    const stays = story.write({ kind: 'deleteOne', id: 'z' }, { outcome: unknown });
    const part = story.upsert(['a']);
    const gone = story.write({ kind: 'delete', ids: ['a'] }, { outcome: unknown });
    story.upsert(['a'], { outcome: { kind: 'acknowledged', sequence: 5, counts: {} } });
    const counts = { inserted_count: 0, updated_count: 1 };
    part.outcome = { kind: 'acknowledged', sequence: 3, counts: {} };
    story.history.streams.push({ title: 'stream', parts: [part], counts });
    story.dump();
    const long = { startedAt: start, endedAt: story.now - 1 };
    // Otherwise either of the deletes could come first.
    story.history.writes.splice(1, 3, { ...gone, ...long }, part, { ...stays, ...long });
    assert.deepEqual(story.faults(), []);
  });
});

describe('the checker reports', () => {
  it('a lost write: acknowledged, and gone after a restart', () => {
    const story = new Story();
    story.upsert(['a']);
    const kept = story.copy();
    story.upsert(['b']);
    story.dump(kept, 1);
    assertFault(story, 'lost write', /^w2: acknowledged at sequence 2, but dump 5 is at 1$/);
  });

  it('a write that kept its sequence and lost its rows', () => {
    const story = new Story();
    story.upsert(['a']);
    const kept = story.copy();
    story.upsert(['b']);
    story.dump(kept, 2);
    assertFault(story, 'lost write', /dump 5: "b" is missing, which w2 wrote at sequence 2/);
  });

  it('a delete that is undone', () => {
    const story = new Story();
    story.upsert(['a']);
    const before = story.copy();
    story.write({ kind: 'deleteOne', id: 'a' });
    story.dump(before);
    assertFault(story, 'lost write', /"a" is there, as w1 wrote it at 1; it should be deleted/);
  });

  it('half of a batch', () => {
    const story = new Story();
    story.upsert(['a', 'b'], { outcome: { kind: 'unknown' } });
    story.state.delete('b');
    story.dump();
    assertFault(story, 'lost write', /"b" is missing/);
  });

  it('a stale read: of a state before a write that had been acknowledged', () => {
    const story = new Story();
    story.upsert(['a']);
    const before = story.copy();
    story.upsert(['a']);
    story.fetch(['a'], before);
    story.dump();
    assertFault(story, 'stale read', /^fetch a: the state at sequence 1, but w2 had seen 2 before/);
  });

  it('a read that names a sequence from before another read', () => {
    const story = new Story();
    story.upsert(['a']);
    story.upsert(['b']);
    story.read('first', () => null, 2);
    story.read('second', () => null, 1);
    story.dump();
    assertFault(story, 'stale read', /^second: read at sequence 1, but .* had seen 2 before/);
  });

  it('a strong read on a node that has not heard of what another one has acknowledged', () => {
    const story = new Story();
    story.upsert(['a']).node = 'n1';
    story.read('strong', () => null, 0, { node: 'n2' });
    story.dump();
    assertFault(story, 'stale read', /^strong: read at sequence 0, but w1 had seen 1 before/);
  });

  it('a node that goes back behind what it has acknowledged or shown', () => {
    const story = new Story();
    story.upsert(['a']).node = 'n1';
    const before = story.copy();
    story.upsert(['a']).node = 'n2';
    const lagging = (node: string) => ({ node, mayLag: true });
    story.read('its own write', () => null, 1, lagging('n2'));
    story.read('shown', () => null, 2, lagging('n1'));
    const old = explainFetch(['a'], {
      vectors: [...before.values()].map(shown),
      not_found: [],
    });
    story.read('hidden again', old, null, lagging('n1'));
    story.dump();
    assertFault(
      story,
      'stale read',
      /^its own write: read at sequence 1, but w2 had seen 2 before/,
    );
    assertFault(
      story,
      'stale read',
      /^hidden again: the state at sequence 1, but shown had seen 2/,
    );
  });

  it('a read from before the sequence that it asked for', () => {
    const story = new Story();
    story.upsert(['a']);
    story.read('query', () => null, 0, { node: 'n2', mayLag: true, minSequence: 1 });
    story.dump();
    assertFault(story, 'stale read', /^query: read at sequence 0, but its min_sequence had seen 1/);
  });

  it('two reads without a sequence that see writes in turn', () => {
    const story = new Story();
    const unknown = { kind: 'unknown' } as const;
    story.upsert(['a']);
    const before = story.copy();
    const write = story.upsert(['a'], { outcome: unknown });
    story.fetch(['a']);
    story.fetch(['a'], before);
    story.dump();
    write.endedAt = story.now - 1;
    assertFault(story, 'stale read', /^fetch a: the state at sequence 1, but fetch a had seen 2/);
  });

  it('a torn fetch: rows of two states', () => {
    const story = new Story();
    story.upsert(['a', 'b']);
    const before = story.copy();
    story.upsert(['a', 'b']);
    const torn = new Map([...story.state, ['b', before.get('b')!]]);
    const write = story.history.writes[1]!;
    story.fetch(['a', 'b'], torn);
    const [read] = story.history.reads.splice(0);
    story.history.reads.push({ ...read!, startedAt: write.startedAt, endedAt: write.endedAt });
    story.dump();
    const detail =
      /^fetch a,b: no state from sequence 1 to 2 explains it: at 1 .*"a".*; at 2 .*"b"/;
    assertFault(story, 'unexplained read', detail);
  });

  it('a wrong count', () => {
    const story = new Story();
    story.upsert(['a', 'b']);
    story.read('count', explainCount(FILTER, 1));
    story.dump();
    assertFault(story, 'unexplained read', /^count: .* count: found 1, expected 2/);
  });

  it('a list whose second page skips a row', () => {
    const story = new Story();
    story.upsert(['a', 'b', 'c']);
    const rows = rowsOf(story.state, null).map(shown);
    const pages = [
      { vectors: rows.slice(0, 1), has_more: true },
      { vectors: rows.slice(2), has_more: false },
    ];
    story.read(
      'list',
      explainList(null, 1, () => pages),
    );
    story.dump();
    assertFault(
      story,
      'unexplained read',
      /^list: .* page 2: ids: found \["c"\], expected \["b"\]/,
    );
  });

  it('matches in another order, and a score that is a bit off', () => {
    const story = new Story();
    story.upsert(['a', 'b']);
    const search = { metric: 'dot', filter: null, besides: null } as const;
    const question = { search, vector: [1, 1, 1], topK: 2, limit: 2 };
    const matches = nearest(story.state, { ...search, vector: question.vector });
    const ask = (title: string, found: typeof matches) =>
      story.read(
        title,
        explainQuery(question, () => [{ matches: found, has_more: false, total: 2 }]),
        1,
      );
    ask('right', matches);
    ask('turned', matches.toReversed());
    const [first, ...others] = matches;
    ask('off', [{ ...first!, score: first!.score * (1 + 2 ** -23) }, ...others]);
    story.dump();
    const faults = story.faults();
    assert.deepEqual(
      faults.map(({ kind, detail }) => [kind, detail.split(':')[0]]),
      [
        ['unexplained read', 'turned'],
        ['unexplained read', 'off'],
      ],
    );
  });

  it('writes in another order than they ended and began', () => {
    const story = new Story();
    const first = story.upsert(['a']);
    const second = story.upsert(['b']);
    const times = ({ startedAt, endedAt }: WriteRecord) => ({ startedAt, endedAt });
    story.history.writes.splice(
      0,
      2,
      { ...first, ...times(second) },
      { ...second, ...times(first) },
    );
    story.dump();
    assertFault(story, 'order', /^w1: took effect at sequence 1, but w2 had seen 2 before it/);
  });

  it('two writes with one sequence', () => {
    const story = new Story();
    story.upsert(['a']);
    story.upsert(['b'], {
      outcome: { kind: 'acknowledged', sequence: 1, counts: {} },
      hasEffect: false,
    });
    story.dump();
    assertFault(story, 'order', /both acknowledged at sequence 1/);
  });

  it('a write that is applied twice', () => {
    const story = new Story();
    const row = rowOf('a', 'w1');
    story.write({ kind: 'write', mode: 'upsert', rows: [row] });
    story.fetch(['a']);
    applyEffect(story.state, { kind: 'changed', written: [row], deleted: [], counts: {} }, 2);
    story.sequence = 2;
    story.dump();
    assertFault(story, 'wrong reply', /w1 was acknowledged at 1, but a row has it at 2/);
    assertFault(story, 'unexplained write', /no write that was sent explains sequence 2/);
  });

  it('counts of a write that are wrong at its sequence', () => {
    const story = new Story();
    story.upsert(['a']);
    const counts = { upserted_count: 1, inserted_count: 1, updated_count: 0 };
    story.upsert(['a'], { outcome: { kind: 'acknowledged', sequence: 2, counts } });
    story.dump();
    assertFault(story, 'wrong reply', /^w2: acknowledged with .* expected .*"inserted_count":0/);
  });

  it('a delete by filter that found too few rows', () => {
    const story = new Story();
    story.upsert(['a', 'b']);
    const change = { kind: 'deleteWhere', filter: FILTER } as const;
    story.write(change, {
      outcome: { kind: 'acknowledged', sequence: 2, counts: { deleted_count: 1 } },
    });
    story.dump();
    assertFault(
      story,
      'wrong reply',
      /acknowledged with \{"deleted_count":1\} .* \{"deleted_count":2\}/,
    );
  });

  it('a delete that found nothing where something was', () => {
    const story = new Story();
    story.upsert(['a']);
    const change = { kind: 'delete', ids: ['a'] } as const;
    story.read('delete', explainCounts(change, { deleted_count: 0 }, false), 1);
    story.dump();
    assertFault(story, 'unexplained read', /^delete: not the state at its sequence 1/);
  });

  it('a refusal that is wrong or caused by a write that never happened', () => {
    const story = new Story();
    story.upsert(['a']);
    const rows = [{ ...rowOf('a', 'w'), ifSequence: 1 }];
    const change = { kind: 'write', mode: 'upsert', rows } as const;
    story.read('if 1', explainRefusal(change, 'precondition_failed', [0]));
    const insert = { kind: 'write', mode: 'insert', rows: [rowOf('b', 'w')] } as const;
    story.read('insert b', explainRefusal(insert, 'vector_exists', ['/vectors/0/id']));
    story.dump();
    assertFault(story, 'stale read', /^if 1: the state at sequence 0, but w1 had seen 1 before/);
    assertFault(story, 'unexplained read', /^insert b: .*nothing is in the way/);
  });

  it('a patch that was merged into a state other than the previous one', () => {
    const story = new Story();
    story.upsert(['a']);
    story.write({ kind: 'patch', id: 'a', patch: { w: 'w2', tag: 'blue' } });
    story.write({ kind: 'patch', id: 'a', patch: { w: 'w3', n: 2 } });
    const row = story.state.get('a')!;
    story.state.set('a', { ...row, metadata: { ...row.metadata, tag: 'red' } });
    story.dump();
    assertFault(story, 'lost write', /"a" is .*"tag":"red".* expected .*"tag":"blue"/);
  });

  it('a missing part of a stream, and counts that are not the sum of its parts', () => {
    const story = new Story();
    const first = story.upsert(['a'], { outcome: { kind: 'done' }, hasEffect: false });
    const second = story.upsert(['b'], { outcome: { kind: 'done' } });
    const parts = [first, second];
    story.history.streams.push({ title: 'stream', parts, counts: { inserted_count: 3 } });
    story.dump();
    assertFault(story, 'lost write', /^w1: acknowledged, but it has no sequence up to 1/);
    assertFault(
      story,
      'wrong reply',
      /^stream: inserted_count is 3, but its parts have 1 together/,
    );
  });

  it('rows of a write that was refused', () => {
    const story = new Story();
    story.upsert(['a'], { outcome: { kind: 'none' } });
    story.dump();
    assertFault(story, 'unexplained write', /^dump 3: w1 was refused, but a row has it at 1/);
  });

  it('rows in another order of arrival', () => {
    const story = new Story();
    story.upsert(['a', 'b']);
    const [a, b] = rowsOf(story.state, null);
    const rows = [b!, a!];
    story.history.dumps.push({ title: 'dump', at: ++story.now, sequence: 1, rows });
    assertFault(story, 'lost write', /row 0 in order of arrival is "b", expected "a"/);
  });
});

it('streams end early within a row, wherever they are cut', () => {
  const rows = Buffer.from('{"id":"a","values":[1]}\n{"id":"b","values":[2]}\n{"id":"c"}\n');
  for (let share = 0.01; share < 1; share += 0.003) {
    const lines = rows.subarray(0, placeWithin(rows, share)).toString().split('\n');
    assert.throws(() => JSON.parse(lines.at(-1)!), SyntaxError);
    assert.notEqual(placeWithin(new Uint8Array(64), share) % 8, 0);
  }
});
