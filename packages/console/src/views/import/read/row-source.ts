// What every reader of a file format gives: its rows in order, in blocks of bounded size.

/** A row as the file has it, by column. */
export interface ReadRow {
  readonly kind: 'row';
  readonly cells: Readonly<Record<string, unknown>>;
  /** CSV only: the columns whose cell is in quotes, and so text even if it looks like a number. */
  readonly quoted?: ReadonlySet<string>;
}

/** A row that could not be read, while those after it can. */
interface BrokenRow {
  readonly kind: 'broken';
  readonly problem: string;
  /** The beginning of its text. */
  readonly text: string;
}

export type SourceRow = ReadRow | BrokenRow;

export interface RowSource {
  /** Of the format, for people. */
  readonly title: string;
  /** Undefined when only reading everything tells. */
  readonly rowCount: number | undefined;
  /** Cells are text whose types have to be recognized. */
  readonly isText: boolean;
  /** Undefined when rows may have different ones. */
  readonly columns: readonly string[] | undefined;
  /** Rows from `startRow` on. Throws ImportError for a file that cannot be read on. */
  rows(startRow: number): AsyncGenerator<readonly SourceRow[]>;
  /** The share of the file that was read: 0 to 1. */
  share(): number;
}

/** What is wrong with the file or with a row, for the person who imports it. */
export class ImportError extends Error {}

export const TEXT_EXCERPT_MAX = 200;
/** Rows of a block: few enough that blocks of long rows stay small. */
export const BLOCK_ROWS = 1_000;
