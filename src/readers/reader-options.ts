// How to read the rows of a file: which columns hold ids, vectors and metadata, and what happens to bad rows.

/** The character before the fraction of a number. */
export type DecimalPoint = '.' | ',';

/** The user's choices for the columns of a file. */
export interface ReaderChoices {
  /** Column of the id. Absent: `id`, if it exists. Null: rows have no ids. */
  readonly idField?: string | null | undefined;
  /** Column of the vector. Absent: the first of VECTOR_NAMES that exists. */
  readonly valuesField?: string | undefined;
  /** The column of the text that becomes the vector, which stays part of the metadata. */
  readonly embed?: string | undefined;
  /** Columns that become metadata; a column `metadata` contributes its members. Absent: the default of the format. */
  readonly fields?: readonly string[] | undefined;
  /** Columns that do not become metadata. */
  readonly exclude?: readonly string[] | undefined;
  /** The columns of the vector, one per value. */
  readonly vectorColumns?: readonly string[] | undefined;
  /** CSV only. Absent: tab for .tsv, otherwise comma. `detect`: the most frequent delimiter of the header. */
  readonly delimiter?: string | undefined;
  /** CSV only. Absent: `.`. */
  readonly decimal?: DecimalPoint | undefined;
  /** The dataset of an HDF5 file or the array of an npz archive. Absent: the default of the format. */
  readonly dataset?: string | undefined;
}

export interface ReaderOptions extends ReaderChoices {
  /** Whether NaN in metadata becomes null. Otherwise it is an error, since JSON has no NaN. */
  readonly isNanNull?: boolean | undefined;
  /** Whether to leave out index columns (INDEX_COLUMN) that no option names. */
  readonly withoutIndex?: boolean | undefined;
  /** Receives the names of index columns that become metadata. */
  readonly onIndex?: ((names: readonly string[]) => void) | undefined;
  readonly rowsPerBatch: number;
  /** The vectors of the collection. Absent: only the unnamed vector. */
  readonly vectors?: TargetVectors | undefined;
  /** The dimension of the unnamed vector. Absent: that of the first row. */
  readonly dimension?: number | undefined;
  /** Decides what happens after a bad row. Absent: reading fails with its error. */
  readonly onBadRow?: ((bad: BadRow) => 'skip' | 'stop') | undefined;
}

/** A row that cannot be read, although the rows after it can. */
export interface BadRow {
  /** Row of the file, from 0. */
  readonly row: number;
  readonly problem: string;
}

/** The dense vectors of the collection that receives the rows. */
export interface TargetVectors {
  readonly hasUnnamed: boolean;
  /** The dimensions of the named vectors, by name. */
  readonly named: ReadonlyMap<string, number>;
  /** Whether rows change existing vectors, so that they may lack the unnamed vector. */
  readonly isPatch?: boolean;
}

export const UNNAMED_ONLY: TargetVectors = { hasUnnamed: true, named: new Map() };

/**
 * The names that pandas gives to an unnamed index: in Parquet and Arrow, and when it reads a CSV file whose first
 * column has no name, as R and pandas write it.
 */
const INDEX_COLUMN = /^(__index_level_\d+__|Unnamed: 0(\.\d+)*)$/;

/** The positions of the columns that are probably an index. */
export function indexColumns(names: readonly string[]): ReadonlySet<number> {
  const found = names.flatMap((name, at) => {
    const isUnnamed = at === 0 && name === '' && names.length > 1;
    return isUnnamed || INDEX_COLUMN.test(name) ? [at] : [];
  });
  return new Set(found);
}
