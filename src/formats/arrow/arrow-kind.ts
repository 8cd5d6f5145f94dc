// How vectors of one kind are stored in a record batch. `vector-kinds.ts` lists the kinds.

import type { Limits } from '../../common/limits.js';
import type { VectorColumn } from '../../common/vectors.js';
import type { ArrowColumn } from './columns.js';
import type { ColumnToWrite, FieldToWrite } from './ipc-writer.js';
import type { RowIssues } from './row-issues.js';
import type { ArrowField } from './schema.js';

/** How to read the vectors of one name. */
export interface VectorsToRead {
  readonly name: string;
  /** Whether rows may lack the vector and are then null. */
  readonly mayBeNull: boolean;
  /** Limit for the result. */
  readonly bytesMax: number;
  readonly limits: Pick<Limits, 'multiVectorsMax' | 'multiValuesMax'>;
  readonly issues: RowIssues;
}

export interface ArrowKind<Spec, Found, Written extends VectorColumn> {
  /** The member of a record that holds the vectors by name. */
  readonly member: string;
  /** The members of a vector that have their own columns; '' for the vector itself. */
  readonly parts: readonly string[];
  /** Names the vectors in errors. */
  readonly what: string;
  /** Names the required type in errors. */
  readonly expected: string;
  isField(field: ArrowField): boolean;
  /**
   * The result is undefined if there are issues. Throws `invalid_arrow`.
   * @param columns one for each part.
   */
  read(columns: readonly ArrowColumn[], toRead: VectorsToRead & Spec): Found;
  /** Whether a row without a named vector is null. Otherwise it is empty. */
  readonly isNullable: boolean;
  /** Returns one type for each part. */
  types(spec: Spec): readonly FieldToWrite['type'][];
  /** Returns one column for each part. */
  write(column: Written): readonly ColumnToWrite[];
}
