// Text tables: columns are as wide as their content and the terminal allow; longer text is cut with an
// ellipsis. Control characters are replaced, since metadata comes from anywhere.

export interface TableColumn {
  readonly title: string;
  readonly align?: 'right';
  /** Never cut, because users copy it from the table. */
  readonly isWhole?: boolean;
}

/** Columns are not shrunk below this width. */
const CELL_CHARACTERS_MIN = 8;
const GAP = '  ';

/** A header and the rows, in lines of at most `width` characters where the columns can shrink so far. */
export function renderTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  width: number,
): string {
  const cells = rows.map((row) => row.map(printable));
  const widths = columns.map((column, at) =>
    Math.max(lengthOf(column.title), ...cells.map((row) => lengthOf(row[at]!))),
  );
  const isWhole = columns.map((column) => column.isWhole === true);
  shrink(widths, isWhole, width - GAP.length * (columns.length - 1));
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, at) => pad(cut(text, widths[at]!), widths[at]!, columns[at]!.align))
      .join(GAP)
      .trimEnd();
  return [line(columns.map((column) => printable(column.title))), ...cells.map(line)].join('\n');
}

/** Shrinks the widest column repeatedly until all fit or none may shrink further. */
function shrink(widths: number[], isWhole: readonly boolean[], available: number): void {
  let excess = widths.reduce((sum, width) => sum + width, 0) - available;
  while (excess > 0) {
    const widest = Math.max(...widths.filter((_, at) => !isWhole[at]));
    if (widest <= CELL_CHARACTERS_MIN) return;
    const at = widths.findLastIndex((width, index) => width === widest && !isWhole[index]);
    const next = Math.max(
      CELL_CHARACTERS_MIN,
      ...widths.filter((each, index) => each < widest && !isWhole[index]),
    );
    const taken = Math.min(excess, Math.max(1, widest - next));
    widths[at] = widest - taken;
    excess -= taken;
  }
}

/** Replaces control characters and marks that change the direction of text by a visible dot. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '·');
}

function cut(text: string, width: number): string {
  if (lengthOf(text) <= width) return text;
  return `${[...text].slice(0, width - 1).join('')}…`;
}

function pad(text: string, width: number, align: 'right' | undefined): string {
  const space = ' '.repeat(Math.max(0, width - lengthOf(text)));
  return align === 'right' ? space + text : text + space;
}

function lengthOf(text: string): number {
  return [...text].length;
}
