// What a kind of vectors is in a record batch. The kinds are in `vector-kinds.ts`.

import type { Limits } from '../../common/limits.js';
import type { VectorColumn } from '../../common/vectors.js';
import type { Column } from './columns.js';
import type { ColumnToWrite, FieldToWrite } from './ipc-writer.js';
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

export interface ArrowKind<Spec, Found, Written extends VectorColumn> {
  /** The member of a record that has the vectors by name. */
  readonly member: string;
  /** The members of a vector that have columns of their own; '' for the vector itself. */
  readonly parts: readonly string[];
  /** What the columns are for, and what they must hold, in errors. */
  readonly what: string;
  readonly expected: string;
  isField(field: ArrowField): boolean;
  /**
   * @param columns one for each part. Undefined content if there are issues. Throws `invalid_arrow`.
   */
  read(columns: readonly Column[], toRead: NamedToRead & Spec): Found;
  /** Whether a row without a named vector is null; it is empty otherwise. */
  readonly isNullable: boolean;
  /** One for each part; so has `write`. */
  types(spec: Spec): readonly FieldToWrite['type'][];
  write(column: Written): readonly ColumnToWrite[];
}
