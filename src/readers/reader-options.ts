// How the rows of a file are to be read: which columns are ids, vectors and metadata, and what happens to bad rows.

/** What separates the fraction of a number. */
export type DecimalPoint = '.' | ',';

/** What the person chose about the rows of a file. */
export interface ReaderChoices {
  /** Column of the id; absent: `id`, if it exists. Null: rows have no ids. */
  readonly idField?: string | null | undefined;
  /** Column of the vector; absent: the first of VECTOR_NAMES that exists. */
  readonly valuesField?: string | undefined;
  /** Columns that become metadata, of which `metadata` gives its members; absent: the default of the format. */
  readonly fields?: readonly string[] | undefined;
  /** Columns that do not become metadata; absent for none. */
  readonly exclude?: readonly string[] | undefined;
  /** One column per value. */
  readonly vectorColumns?: readonly string[] | undefined;
  /** CSV only; absent: tab for .tsv, else comma. `detect`: what the header has most of. */
  readonly delimiter?: string | undefined;
  /** CSV only; absent: `.`. */
  readonly decimal?: DecimalPoint | undefined;
  /** The dataset of an HDF5 file or the array of an npz archive; absent: the default of the format. */
  readonly dataset?: string | undefined;
}

export interface ReaderOptions extends ReaderChoices {
  /** Whether NaN in metadata becomes null; absent: an error, since JSON does not have it. */
  readonly isNanNull?: boolean | undefined;
  /** Leaves out columns of indexes (INDEX_COLUMN) that no option names. */
  readonly withoutIndex?: boolean | undefined;
  /** Gets the names of columns of indexes that become metadata. */
  readonly onIndex?: ((names: readonly string[]) => void) | undefined;
  readonly rowsPerBatch: number;
  /** The vectors of the collection; absent: rows have the unnamed vector only. */
  readonly vectors?: TargetVectors | undefined;
  /** The dimension of the unnamed vector; absent: that of the first row. */
  readonly dimension?: number | undefined;
  /** Decides what happens after a bad row. Absent: reading fails with its error. */
  readonly onBadRow?: ((bad: BadRow) => 'skip' | 'stop') | undefined;
}

/** A row that cannot be read, while those after it can. */
export interface BadRow {
  /** Row of the file, from 0. */
  readonly row: number;
  readonly problem: string;
}

/** The vectors that a collection takes. */
export interface TargetVectors {
  readonly hasUnnamed: boolean;
  /** The dimensions of the named vectors, by name. */
  readonly named: ReadonlyMap<string, number>;
  /** Whether rows change existing vectors, and may lack the unnamed vector. */
  readonly isPatch?: boolean;
}

export const UNNAMED_ONLY: TargetVectors = { hasUnnamed: true, named: new Map() };

/**
 * The names that pandas gives the index of a table that has no name of its own: in Parquet and Arrow, and when a
 * CSV file with a column without a name is read. The latter is the first column, as R and pandas write it.
 */
const INDEX_COLUMN = /^(__index_level_\d+__|Unnamed: 0(\.\d+)*)$/;

/** The positions of columns that are probably an index. */
export function indexColumns(names: readonly string[]): ReadonlySet<number> {
  const found = names.flatMap((name, at) => {
    const isUnnamed = at === 0 && name === '' && names.length > 1;
    return isUnnamed || INDEX_COLUMN.test(name) ? [at] : [];
  });
  return new Set(found);
}
