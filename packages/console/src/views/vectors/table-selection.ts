// Selections of rows, and movements of the active cell. Selections are by id, so that they survive scrolling, sorting
// and refreshing.

/** The maximum number of ids that one request can delete or change. */
export const SELECTED_MAX = 10_000;

export function toggled(selection: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(selection);
  if (!next.delete(id) && next.size < SELECTED_MAX) next.add(id);
  return next;
}

export function withAll(
  selection: ReadonlySet<string>,
  ids: Iterable<string>,
): ReadonlySet<string> {
  const next = new Set(selection);
  for (const id of ids) {
    if (next.size >= SELECTED_MAX) break;
    next.add(id);
  }
  return next;
}

/** Row -1 is the header. */
export interface ActiveCell {
  readonly row: number;
  readonly column: number;
}

export interface TableExtent {
  readonly rowCount: number;
  readonly columnCount: number;
  /** The number of rows that Page Down moves. */
  readonly pageRows: number;
}

/** The cell to which a key moves; undefined if the key does not move. */
export function cellAfterKey(
  { row, column }: ActiveCell,
  { key, ctrlKey }: { readonly key: string; readonly ctrlKey: boolean },
  { rowCount, columnCount, pageRows }: TableExtent,
): ActiveCell | undefined {
  const at = (nextRow: number, nextColumn: number): ActiveCell => ({
    row: Math.min(Math.max(nextRow, -1), rowCount - 1),
    column: Math.min(Math.max(nextColumn, 0), columnCount - 1),
  });
  switch (key) {
    case 'ArrowDown':
      return at(row + 1, column);
    case 'ArrowUp':
      return at(row - 1, column);
    case 'ArrowRight':
      return at(row, column + 1);
    case 'ArrowLeft':
      return at(row, column - 1);
    case 'PageDown':
      return at(Math.max(row, 0) + pageRows, column);
    case 'PageUp':
      return at(Math.max(row - pageRows, 0), column);
    case 'Home':
      return ctrlKey ? at(0, column) : at(row, 0);
    case 'End':
      return ctrlKey ? at(rowCount - 1, column) : at(row, columnCount - 1);
    default:
      return undefined;
  }
}
