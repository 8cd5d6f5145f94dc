// Reads the WordNet senses and queries of the sample data from Arrow files. Another program computed the neighbours in
// the query file in float64, best first, with ties in the order of ids.

import { existsSync, readFileSync } from 'node:fs';
import { type Table, tableFromIPC } from 'apache-arrow';
import type { JsonObject } from '../../src/common/types.js';

export interface Sense {
  readonly id: string;
  /** Base64 of little-endian float32. */
  readonly values: string;
  readonly metadata: JsonObject;
}

export interface Neighbours {
  readonly ids: readonly string[];
  /** Scores as the service defines them for the metric. */
  readonly scores: readonly number[];
  /** Present only for the metric euclidean. */
  readonly distances?: readonly number[];
}

/** The queries to send, with the columns of the query file that hold the answers. */
export const QUESTIONS = [
  { name: 'cosine', column: 'cosine', fields: { metric: 'cosine' } },
  { name: 'dot', column: 'dot', fields: { metric: 'dot' } },
  { name: 'euclidean', column: 'euclidean_sq_neg', fields: { metric: 'euclidean' } },
  {
    name: 'cosine among verbs',
    column: 'cosine_verb',
    fields: { metric: 'cosine', filter: { pos: 'verb' } },
  },
] as const;

type QuestionName = (typeof QUESTIONS)[number]['name'];

export interface SenseQuery {
  readonly id: string;
  readonly values: string;
  readonly neighbours: Readonly<Record<QuestionName, Neighbours>>;
}

/** Reads both files. Returns null if either is missing. */
export function readWordnet(files: {
  senses: string;
  queries: string;
}): { senses: Sense[]; queries: SenseQuery[] } | null {
  if (!existsSync(files.senses) || !existsSync(files.queries)) return null;
  return { senses: readSenses(files.senses), queries: readQueries(files.queries) };
}

type Row = Record<string, unknown>;

function readRows(path: string): Row[] {
  const table: Table = tableFromIPC(readFileSync(path));
  return table.toArray().map((row: { toJSON(): Row }) => row.toJSON());
}

function readSenses(path: string): Sense[] {
  return readRows(path).map(({ id, values, words, ...rest }) => ({
    id: String(id),
    values: base64Of(values),
    metadata: { ...(rest as JsonObject), words: [...(words as Iterable<string>)] },
  }));
}

function readQueries(path: string): SenseQuery[] {
  return readRows(path).map((row) => {
    const neighbours = QUESTIONS.map(({ name, column }): [string, Neighbours] => {
      const ids = [...(row[`${column}_ids`] as Iterable<string>)];
      const scores = [...(row[`${column}_scores`] as Iterable<number>)];
      if (column !== 'euclidean_sq_neg') return [name, { ids, scores }];
      const distances = scores.map((score) => Math.sqrt(-score));
      return [name, { ids, scores: distances.map((d) => 1 / (1 + d)), distances }];
    });
    return {
      id: String(row.id),
      values: base64Of(row.values),
      neighbours: Object.fromEntries(neighbours) as SenseQuery['neighbours'],
    };
  });
}

function base64Of(vector: unknown): string {
  const values = Float32Array.from(vector as Iterable<number>);
  return Buffer.from(values.buffer).toString('base64');
}
