// Renders text tables. Columns are as wide as their content and the terminal allow, and longer text is cut with an
// ellipsis. On a terminal that is too narrow for all columns, each row becomes a list of titles and values. Control
// characters are replaced, since metadata is not trusted.

import { printable } from '../../common/printable.js';
import { cutToWidth, textWidth } from './text-width.js';

export interface TextTableColumn {
  readonly title: string;
  readonly align?: 'right';
  /** Whether cells are never cut, because users copy them from the table. */
  readonly isWhole?: boolean;
}

/** Columns are not shrunk below this width. */
const CELL_WIDTH_MIN = 8;
/** Width of output that does not go to a terminal. */
const WIDTH_DEFAULT = 100;
const GAP = '  ';

type Rows = readonly (readonly string[])[];

/** A table for stdout, or lists on a terminal that is too narrow for all columns. */
export function tableForStdout(
  columns: readonly TextTableColumn[],
  rows: Rows,
  widthDefault = WIDTH_DEFAULT,
): string {
  const { isTTY, columns: width } = process.stdout;
  // Some terminals report the width 0 when they do not know it.
  const widthMax = width || widthDefault;
  return isTTY === true
    ? renderFitting(columns, rows, widthMax)
    : renderTable(columns, rows, widthMax);
}

/** A table, or lists if the columns cannot shrink to the width. */
export function renderFitting(
  columns: readonly TextTableColumn[],
  rows: Rows,
  width: number,
): string {
  const { widths } = measure(columns, rows, width);
  const total = widths.reduce((sum, each) => sum + each, GAP.length * (columns.length - 1));
  const render = total <= width ? renderTable : renderLists;
  return render(columns, rows, width);
}

/** A header and the rows, in lines of at most `width` columns if the table can shrink that far. */
export function renderTable(
  columns: readonly TextTableColumn[],
  rows: Rows,
  width: number,
): string {
  const { titles, cells, widths } = measure(columns, rows, width);
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, at) => pad(cutToWidth(text, widths[at]!), widths[at]!, columns[at]!.align))
      .join(GAP)
      .trimEnd();
  return [titles, ...cells].map(line).join('\n');
}

interface Measure {
  /** Control characters are replaced, here and in the cells. */
  readonly titles: readonly string[];
  readonly cells: Rows;
  readonly widths: readonly number[];
}

function measure(columns: readonly TextTableColumn[], rows: Rows, width: number): Measure {
  const titles = columns.map(({ title }) => printable(title));
  const cells = rows.map((row) => row.map(printable));
  const widths = titles.map((title, at) =>
    cells.reduce((max, row) => Math.max(max, textWidth(row[at]!)), textWidth(title)),
  );
  const isWhole = columns.map((column) => column.isWhole === true);
  shrink(widths, isWhole, width - GAP.length * (columns.length - 1));
  return { titles, cells, widths };
}

/** Renders each row as a list with a line, title and value, for each cell that is not empty. */
function renderLists(columns: readonly TextTableColumn[], rows: Rows, width: number): string {
  const titles = columns.map(({ title }) => printable(title));
  const titleWidth = Math.max(...titles.map(textWidth));
  const left = Math.max(CELL_WIDTH_MIN, width - titleWidth - GAP.length);
  const lists = rows.map((row) =>
    row.flatMap((cell, at) => {
      if (cell === '') return [];
      const text = printable(cell);
      const shown = columns[at]!.isWhole === true ? text : cutToWidth(text, left);
      return [`${pad(titles[at]!, titleWidth, undefined)}${GAP}${shown}`];
    }),
  );
  return lists.map((lines) => lines.join('\n')).join('\n\n');
}

/** Shrinks the widest column repeatedly until all fit or none may shrink further. */
function shrink(widths: number[], isWhole: readonly boolean[], available: number): void {
  let excess = widths.reduce((sum, width) => sum + width, 0) - available;
  while (excess > 0) {
    const widest = Math.max(...widths.filter((_, at) => !isWhole[at]));
    if (widest <= CELL_WIDTH_MIN) return;
    const at = widths.findLastIndex((width, index) => width === widest && !isWhole[index]);
    const next = Math.max(
      CELL_WIDTH_MIN,
      ...widths.filter((each, index) => each < widest && !isWhole[index]),
    );
    const taken = Math.min(excess, Math.max(1, widest - next));
    widths[at] = widest - taken;
    excess -= taken;
  }
}

function pad(text: string, width: number, align: 'right' | undefined): string {
  const space = ' '.repeat(Math.max(0, width - textWidth(text)));
  return align === 'right' ? space + text : text + space;
}
