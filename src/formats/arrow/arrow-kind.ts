// What a kind of vectors is in a record batch. The kinds are in `vector-kinds.ts`.

import type { Limits } from '../../common/limits.js';
import type { Column } from './columns.js';
import type { RowIssues } from './row-issues.js';
import type { ArrowField } from './schema.js';

/** Vectors of one name to read. */
export interface NamedToRead {
  readonly name: string;
  /** Whether rows may lack the vector: null stands for none then. */
  readonly mayBeNull: boolean;
  /** Bound on the result. */
  readonly bytesMax: number;
  readonly limits: Pick<Limits, 'multiVectorsMax' | 'multiValuesMax'>;
  readonly issues: RowIssues;
}

export interface ArrowKind<Spec, Found> {
  /** A column's name is the prefix, the name of the vector and one of the suffixes. */
  readonly prefix: string;
  readonly suffixes: readonly string[];
  /** What the columns are for, and what they must hold, in errors. */
  readonly what: string;
  readonly expected: string;
  isField(field: ArrowField): boolean;
  /**
   * @param columns one for each suffix. Undefined content if there are issues. Throws `invalid_arrow`.
   */
  read(columns: readonly Column[], toRead: NamedToRead & Spec): Found;
}
