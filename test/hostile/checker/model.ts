// The expected contents of a collection: rows by id, what each kind of write changes and replies, and brute force for
// filters and scores. It shares no code with the service.

export type Metric = 'cosine' | 'dot' | 'euclidean';

/** `w` names the write that wrote the row, so that a row which is read identifies its write. */
export interface Metadata {
  readonly w: string;
  readonly tag: string;
  /** Absent from rows that only mark the parts of a stream. */
  readonly n?: number;
  readonly x?: string;
}

export interface Row {
  readonly id: string;
  /** Small integers, so that sums of their products are exact in any order. */
  readonly values: readonly number[];
  readonly metadata: Metadata;
}

export interface StoredRow extends Row {
  /** Sequence of the write that wrote it, and its index among the rows of that write. */
  readonly sequence: number;
  readonly place: number;
}

export type State = ReadonlyMap<string, StoredRow>;

export type Filter =
  | { readonly kind: 'tag'; readonly tag: string }
  | { readonly kind: 'from'; readonly n: number }
  | { readonly kind: 'not'; readonly tag: string; readonly below: number };

export function filterJson(filter: Filter): object {
  switch (filter.kind) {
    case 'tag':
      return { tag: filter.tag };
    case 'from':
      return { n: { $gte: filter.n } };
    case 'not':
      return { $not: { tag: filter.tag }, n: { $lt: filter.below } };
  }
}

function passes({ metadata }: Row, filter: Filter | null): boolean {
  if (filter === null) return true;
  const { n = Number.NaN } = metadata;
  switch (filter.kind) {
    case 'tag':
      return metadata.tag === filter.tag;
    case 'from':
      return n >= filter.n;
    case 'not':
      return metadata.tag !== filter.tag && n < filter.below;
  }
}

interface RowToWrite extends Row {
  /** The write is refused unless the row was last written at this sequence; 0 means that it must not exist. */
  readonly ifSequence?: number;
}

/** What a write does, independent of the kind of request. */
export type Change =
  | {
      readonly kind: 'write';
      readonly mode: 'upsert' | 'insert' | 'update';
      readonly rows: readonly RowToWrite[];
    }
  | {
      readonly kind: 'patch';
      readonly id: string;
      /** A merge patch; null removes a member. */
      readonly patch: Readonly<Record<string, unknown>>;
      readonly values?: readonly number[];
      /** The sequence in the entity tag of If-Match, or in `if_sequence`. */
      readonly ifSequence?: number;
    }
  | { readonly kind: 'deleteOne'; readonly id: string; readonly ifSequence?: number }
  | { readonly kind: 'delete'; readonly ids: readonly string[] }
  | { readonly kind: 'deleteWhere'; readonly filter: Filter | null }
  | {
      readonly kind: 'update';
      readonly filter: Filter;
      readonly patch: Readonly<Record<string, unknown>>;
      readonly limit?: number;
    };

/** The members of a reply that tell what a write did. */
export type Counts = Readonly<Record<string, number | boolean>>;

export type Effect =
  | {
      readonly kind: 'changed';
      readonly written: readonly Row[];
      readonly deleted: readonly string[];
      readonly counts: Counts;
    }
  /** There is nothing to do, and the write takes no sequence. */
  | { readonly kind: 'unchanged'; readonly counts: Counts }
  | {
      readonly kind: 'refused';
      readonly code: string;
      /** For each conflicting row, its location in the body, or its sequence. */
      readonly issues: readonly (string | number)[];
    };

/** What the change does to a collection in this state. */
export function effectOf(state: State, change: Change): Effect {
  switch (change.kind) {
    case 'write':
      return effectOfWrite(state, change);
    case 'patch':
      return effectOfPatch(state, change);
    case 'deleteOne':
      return effectOfDeleteOne(state, change);
    case 'delete':
      return deletion(change.ids.filter((id) => state.has(id)));
    case 'deleteWhere':
      return deletion(rowsOf(state, change.filter).map(({ id }) => id));
    case 'update':
      return effectOfUpdate(state, change);
  }
}

function effectOfWrite(state: State, { mode, rows }: Extract<Change, { kind: 'write' }>): Effect {
  const inTheWay = rows.flatMap(({ id }, i) =>
    mode !== 'upsert' && state.has(id) === (mode === 'insert') ? [`/vectors/${i}/id`] : [],
  );
  if (inTheWay.length > 0) {
    const code = mode === 'insert' ? 'vector_exists' : 'vector_not_found';
    return { kind: 'refused', code, issues: inTheWay };
  }
  const others = rows.flatMap(({ id, ifSequence }) => {
    const actual = state.get(id)?.sequence ?? 0;
    return ifSequence !== undefined && ifSequence !== actual ? [actual] : [];
  });
  if (others.length > 0) return { kind: 'refused', code: 'precondition_failed', issues: others };
  const updated = rows.filter(({ id }) => state.has(id)).length;
  return {
    kind: 'changed',
    written: rows.map(({ id, values, metadata }) => ({ id, values, metadata })),
    deleted: [],
    counts: {
      upserted_count: rows.length,
      inserted_count: rows.length - updated,
      updated_count: updated,
    },
  };
}

function effectOfPatch(
  state: State,
  { id, patch, values, ifSequence }: Extract<Change, { kind: 'patch' }>,
): Effect {
  const row = state.get(id);
  if (row === undefined) return { kind: 'refused', code: 'vector_not_found', issues: [] };
  if (ifSequence !== undefined && ifSequence !== row.sequence) {
    return { kind: 'refused', code: 'precondition_failed', issues: [row.sequence] };
  }
  const written = [{ id, values: values ?? row.values, metadata: merged(row.metadata, patch) }];
  return { kind: 'changed', written, deleted: [], counts: {} };
}

function effectOfDeleteOne(
  state: State,
  { id, ifSequence }: Extract<Change, { kind: 'deleteOne' }>,
): Effect {
  const row = state.get(id);
  if (row === undefined) return { kind: 'refused', code: 'vector_not_found', issues: [] };
  if (ifSequence !== undefined && ifSequence !== row.sequence) {
    return { kind: 'refused', code: 'precondition_failed', issues: [row.sequence] };
  }
  return { kind: 'changed', written: [], deleted: [id], counts: {} };
}

function deletion(deleted: readonly string[]): Effect {
  const counts = { deleted_count: deleted.length };
  if (deleted.length === 0) return { kind: 'unchanged', counts };
  return { kind: 'changed', written: [], deleted, counts };
}

function effectOfUpdate(
  state: State,
  { filter, patch, limit }: Extract<Change, { kind: 'update' }>,
): Effect {
  const changed = rowsOf(state, filter)
    .map((row) => ({ row, metadata: merged(row.metadata, patch) }))
    .filter(({ row, metadata }) => JSON.stringify(metadata) !== JSON.stringify(row.metadata));
  const written = changed
    .slice(0, limit)
    .map(({ row: { id, values }, metadata }) => ({ id, values, metadata }));
  const counts = {
    updated_count: written.length,
    has_more: written.length < changed.length,
  };
  if (written.length === 0) return { kind: 'unchanged', counts };
  return { kind: 'changed', written, deleted: [], counts };
}

/** A JSON merge patch of one level; members keep their order. */
function merged(metadata: Metadata, patch: Readonly<Record<string, unknown>>): Metadata {
  const members = new Map<string, unknown>(Object.entries(metadata));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name);
    else members.set(name, value);
  }
  return Object.fromEntries(members) as unknown as Metadata;
}

/** Applies an effect at a sequence. */
export function applyEffect(state: Map<string, StoredRow>, effect: Effect, sequence: number): void {
  if (effect.kind !== 'changed') return;
  for (const id of effect.deleted) state.delete(id);
  for (const [place, row] of effect.written.entries()) {
    state.set(row.id, { ...row, sequence, place });
  }
}

/** In order of arrival. */
export function rowsOf(state: State, filter: Filter | null): StoredRow[] {
  return [...state.values()]
    .filter((row) => passes(row, filter))
    .sort((a, b) => a.sequence - b.sequence || a.place - b.place);
}

export interface Match {
  readonly id: string;
  /** As in replies, rounded to float32. */
  readonly score: number;
  readonly distance?: number;
  readonly metadata: Metadata;
}

export interface Search {
  readonly metric: Metric;
  readonly vector: readonly number[];
  readonly filter: Filter | null;
  /** The id whose vector is searched for and which is not a match itself; null for none. */
  readonly besides: string | null;
}

/** All rows that pass, nearest first. */
export function nearest(state: State, { metric, vector, filter, besides }: Search): Match[] {
  const scored = [...state.values()]
    .filter((row) => row.id !== besides && passes(row, filter))
    .map((row) => ({ row, ...scoreOf(metric, vector, row.values) }));
  scored.sort((a, b) => b.order - a.order || (a.row.id < b.row.id ? -1 : 1));
  return scored.map(({ row: { id, metadata }, score, distance }) => ({
    id,
    score: Math.fround(score),
    ...(distance === undefined ? {} : { distance: Math.fround(distance) }),
    metadata,
  }));
}

function scoreOf(
  metric: Metric,
  a: readonly number[],
  b: readonly number[],
): { readonly order: number; readonly score: number; readonly distance?: number } {
  const product = sumOf(a, (value, i) => value * b[i]!);
  switch (metric) {
    case 'dot':
      return { order: product, score: product };
    case 'cosine': {
      const lengths = Math.sqrt(sumOf(a, square)) * Math.sqrt(sumOf(b, square));
      const score = Math.max(-1, Math.min(1, product / lengths));
      return { order: score, score };
    }
    case 'euclidean': {
      const squared = sumOf(a, (value, i) => square(value - b[i]!));
      const distance = Math.sqrt(squared);
      return { order: -squared, score: 1 / (1 + distance), distance };
    }
  }
}

function sumOf(values: readonly number[], term: (value: number, i: number) => number): number {
  return values.reduce((sum, value, i) => sum + term(value, i), 0);
}

function square(value: number): number {
  return value * value;
}
