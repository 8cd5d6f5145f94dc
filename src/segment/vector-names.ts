// Maps the names of vectors to columns of segments. Vectors are added to collections and dropped while rows are
// written, and files and log records keep the columns of dropped vectors. A name that is used again gets another
// column, so that dropped vectors do not reappear.

/** The names of a collection's vectors and their columns. */
export interface VectorNameColumns {
  /** The names of all vectors of the collection. */
  readonly names: Iterable<string>;
  /** The columns of vectors that were added after the creation, by name. Other columns are called like their vector. */
  readonly columns: Readonly<Record<string, string>>;
  /** The number of vectors added after the creation, including those that were dropped again. */
  readonly additionCount: number;
}

/** Does not occur in names of vectors. */
const SEPARATOR = '~';

/** @param addition the number of the vector among those added after the creation, counted from 1. */
export function addedColumn(name: string, addition: number): string {
  return `${name}${SEPARATOR}${addition}`;
}

/** Returns 0 for a column that exists since the creation of the collection. */
function additionOf(column: string): number {
  const at = column.indexOf(SEPARATOR);
  return at < 0 ? 0 : Number(column.slice(at + 1));
}

/** Shared by all segments of a collection. */
export class VectorNames {
  #columns: ReadonlyMap<string, string> | null = null;
  #live: ReadonlySet<string> = new Set();
  #additionCount = 0;

  /** Replaces the mapping. Before the first call, every column is called like its vector. */
  redefine({ names, columns, additionCount }: VectorNameColumns): void {
    const columnOf = (name: string) => (Object.hasOwn(columns, name) ? columns[name]! : name);
    this.#columns = new Map(Array.from(names, (name) => [name, columnOf(name)]));
    this.#live = new Set(this.#columns.values());
    this.#additionCount = additionCount;
  }

  /** Columns by name. The map is replaced, never changed. */
  get columns(): ReadonlyMap<string, string> {
    return this.#columns ?? new Map();
  }

  /** Returns undefined if the collection has no vector of this name. */
  columnOf(name: string): string | undefined {
    return this.#columns === null ? name : this.#columns.get(name);
  }

  /**
   * Whether the vectors of the column were dropped. A column of an unknown addition was not: a node of a cluster
   * may apply rows before it learns that their vector was added.
   */
  isDropped(column: string): boolean {
    if (this.#columns === null || this.#live.has(column)) return false;
    return additionOf(column) <= this.#additionCount;
  }
}
