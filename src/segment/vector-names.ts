// Which column of the segments has the vectors of a name. Vectors are added to collections and dropped while rows
// are written, and files and log records keep columns of vectors that were dropped. A name that is used again gets
// another column, so that nothing that was dropped comes back.

/** What a collection's definition says of the columns of its named, sparse and multi-vectors. */
export interface NamesOfColumns {
  /** Of all that it has. */
  readonly names: Iterable<string>;
  /** The columns of those that were added after the creation, by name; the others have the column of their name. */
  readonly columns: Readonly<Record<string, string>>;
  /** How many were added after the creation, with those that were dropped again. */
  readonly additionCount: number;
}

/** Names of vectors do not have it. */
const SEPARATOR = '~';

/** The column of the vector that is the `addition`-th to be added, counted from 1. */
export function addedColumn(name: string, addition: number): string {
  return `${name}${SEPARATOR}${addition}`;
}

/** 0 for a column that the collection had when it was created. */
function additionOf(column: string): number {
  const at = column.indexOf(SEPARATOR);
  return at < 0 ? 0 : Number(column.slice(at + 1));
}

/** Shared by all segments of a collection. */
export class VectorNames {
  #columns: ReadonlyMap<string, string> | null = null;
  #live: ReadonlySet<string> = new Set();
  #additionCount = 0;

  /** From now on; before, every column is that of its name. */
  redefine({ names, columns, additionCount }: NamesOfColumns): void {
    const columnOf = (name: string) => (Object.hasOwn(columns, name) ? columns[name]! : name);
    this.#columns = new Map(Array.from(names, (name) => [name, columnOf(name)]));
    this.#live = new Set(this.#columns.values());
    this.#additionCount = additionCount;
  }

  /** By name; replaced, never changed. */
  get columns(): ReadonlyMap<string, string> {
    return this.#columns ?? new Map();
  }

  /** Undefined for a name that the collection does not have. */
  columnOf(name: string): string | undefined {
    return this.#columns === null ? name : this.#columns.get(name);
  }

  /**
   * Whether the vectors of the column were dropped. Those of an addition that is not known yet were not: a node of a
   * cluster may apply rows before it learns that their vector was added.
   */
  isDropped(column: string): boolean {
    if (this.#columns === null || this.#live.has(column)) return false;
    return additionOf(column) <= this.#additionCount;
  }
}
