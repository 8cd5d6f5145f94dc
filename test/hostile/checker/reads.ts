// What replies to reads say about the state that they saw, as functions of a state.

import type { Explain } from './history.js';
import {
  type Change,
  type Counts,
  effectOf,
  type Filter,
  type Metadata,
  nearest,
  rowsOf,
  type Search,
  type StoredRow,
} from './model.js';

/** A row as in replies. */
export interface ReadRow {
  readonly id: string;
  readonly values?: readonly number[];
  readonly metadata?: Metadata;
  readonly sequence?: number;
}

/** Rows requested by their ids in a single request. */
export function explainFetch(
  ids: readonly string[],
  reply: { readonly vectors: readonly ReadRow[]; readonly not_found: readonly string[] },
): Explain {
  return (state) => {
    const present = ids.filter((id) => state.has(id));
    const missing = ids.filter((id) => !state.has(id));
    return (
      differs('not_found', reply.not_found, missing) ??
      differenceOfRows(
        reply.vectors,
        present.map((id) => state.get(id)!),
      )
    );
  };
}

export function explainCount(filter: Filter | null, count: number): Explain {
  return (state) => differs('count', count, rowsOf(state, filter).length);
}

/** Consecutive pages of the list of all rows that pass, starting with the first. */
export function explainList(
  filter: Filter | null,
  limit: number,
  pages: () => readonly { readonly vectors: readonly ReadRow[]; readonly has_more: boolean }[],
): Explain {
  return (state) => explainPages(rowsOf(state, filter), limit, pages());
}

function explainPages(
  expected: readonly StoredRow[],
  limit: number,
  pages: readonly { readonly vectors: readonly ReadRow[]; readonly has_more: boolean }[],
): string | null {
  for (const [i, { vectors, has_more }] of pages.entries()) {
    const rows = expected.slice(i * limit, (i + 1) * limit);
    const difference =
      differenceOfRows(vectors, rows) ??
      differs('has_more', has_more, (i + 1) * limit < expected.length);
    if (difference !== null) return `page ${i + 1}: ${difference}`;
  }
  return null;
}

/** All rows in order of arrival, with values and metadata. */
export function explainExport(rows: readonly ReadRow[]): Explain {
  return (state) => differenceOfRows(rows, rowsOf(state, null));
}

export interface MatchesReply {
  readonly matches: readonly {
    readonly id: string;
    readonly score: number;
    readonly distance?: number;
    readonly metadata?: Metadata;
  }[];
  readonly has_more: boolean;
  readonly total?: number;
}

export interface QuestionOf {
  readonly search: Omit<Search, 'vector'>;
  /** Null for the vector of the row `besides`. */
  readonly vector: readonly number[] | null;
  /** Maximum number of matches in all pages together; null for all that pass. */
  readonly topK: number | null;
  /** Matches per page. */
  readonly limit: number;
}

/** Consecutive pages of one query. */
export function explainQuery(question: QuestionOf, pages: () => readonly MatchesReply[]): Explain {
  const { search, vector, topK, limit } = question;
  return (state) => {
    const from = vector ?? state.get(search.besides!)?.values;
    if (from === undefined) return `"${search.besides}" does not exist`;
    const all = nearest(state, { ...search, vector: from });
    const expected = all.slice(0, topK ?? all.length);
    for (const [i, page] of pages().entries()) {
      const matches = expected.slice(i * limit, (i + 1) * limit);
      const found = page.matches.map(({ id, score, distance, metadata }) => ({
        id,
        score: Math.fround(score),
        ...(distance === undefined ? {} : { distance: Math.fround(distance) }),
        metadata,
      }));
      const difference =
        differs('matches', found, matches) ??
        differs('has_more', page.has_more, (i + 1) * limit < expected.length) ??
        (page.total === undefined ? null : differs('total', page.total, all.length));
      if (difference !== null) {
        return `page ${i + 1} of ${expected.map(({ id }) => id).join(', ')}: ${difference}`;
      }
    }
    return null;
  };
}

/** A query by the id of a row that does not exist. */
export function explainMissing(id: string): Explain {
  return (state) => (state.has(id) ? `"${id}" exists` : null);
}

/** A write that was refused. */
export function explainRefusal(
  change: Change,
  code: string,
  issues: readonly (string | number)[],
): Explain {
  return (state) => {
    const effect = effectOf(state, change);
    if (effect.kind !== 'refused') return `${code}, but nothing is in the way`;
    return differs('code', code, effect.code) ?? differs('issues', issues, effect.issues);
  };
}

/** A write that had nothing to do, or that only counted what it would do. */
export function explainCounts(change: Change, counts: Counts, isDryRun: boolean): Explain {
  return (state) => {
    const effect = effectOf(state, change);
    if (effect.kind === 'refused') return `it should be refused, ${effect.code}`;
    if (effect.kind === 'changed' && !isDryRun)
      return `${JSON.stringify(counts)}, but there is something to do: ${JSON.stringify(effect.counts)}`;
    for (const [name, value] of Object.entries(counts)) {
      const difference = differs(name, value, effect.counts[name]);
      if (difference !== null) return difference;
    }
    return null;
  };
}

function differenceOfRows(rows: readonly ReadRow[], expected: readonly StoredRow[]): string | null {
  const ids = differs(
    'ids',
    rows.map(({ id }) => id),
    expected.map(({ id }) => id),
  );
  if (ids !== null) return ids;
  for (const [i, row] of rows.entries()) {
    const wanted = expected[i]!;
    const difference =
      (row.sequence === undefined
        ? null
        : differs(`sequence of "${row.id}"`, row.sequence, wanted.sequence)) ??
      (row.metadata === undefined
        ? null
        : differs(`metadata of "${row.id}"`, row.metadata, wanted.metadata)) ??
      (row.values === undefined
        ? null
        : differs(`values of "${row.id}"`, row.values, wanted.values));
    if (difference !== null) return difference;
  }
  return null;
}

function differs(what: string, found: unknown, expected: unknown): string | null {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  return a === b ? null : `${what}: found ${a}, expected ${b}`;
}
