// A table of any number of vectors as a grid that renders only the visible rows. Arrow keys move, Space selects, and
// Enter opens a row; in the header, Enter sorts, and Shift with an arrow key changes the width of a column.

import {
  type CSSProperties,
  type KeyboardEvent,
  type MouseEvent,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from 'react';
import { classNames } from '../../ui/class-names.js';
import { useElementSize } from '../../ui/use-element-size.js';
import type { ShownVector } from './preview.js';
import { contentHeight, type ScrollArea } from './scroll-window.js';
import { type SortState, TableHeader, WIDTH_STEP } from './table-header.js';
import { cellId, SELECTION_WIDTH, TableBodyRow } from './table-row.js';
import { type ActiveCell, cellAfterKey, toggled, withAll } from './table-selection.js';
import { EXTRA_ROWS, useScrollWindow } from './use-scroll-window.js';
import type { VectorTableColumn } from './vector-columns.js';
import styles from './vector-table.module.css';

/** Pixels. */
const ROW_HEIGHT = 34;
/** Rows of two lines, which show more of long texts. */
export const TALL_ROW_HEIGHT = 50;
const HEADER_HEIGHT = 36;

/** A card has a line for each cell, and padding and a border. */
const CARD_LINE_HEIGHT = 28;
const CARD_FRAME_HEIGHT = 17;
/** The height in pixels of a table with a border and a horizontal scroll bar that shows all its rows. */
export function tableHeight(rowCount: number, rowHeight: number, hasScrollBar: boolean): number {
  return HEADER_HEIGHT + rowCount * rowHeight + 2 + (hasScrollBar ? SCROLL_BAR_HEIGHT : 0);
}

const SCROLL_BAR_HEIGHT = 15;

interface VectorTableProps {
  readonly label: string;
  /** Whether rows are cards, with a cell below the other, and only screen readers get the header. */
  readonly isCards?: boolean;
  readonly columns: readonly VectorTableColumn[];
  readonly rowCount: number;
  /** Undefined while the row is loading. A new function causes all rows to be rendered again. */
  readonly rowAt: (index: number) => ShownVector | undefined;
  /** Called with the visible rows [first, last) whenever they change. */
  readonly onRangeChange?: (first: number, last: number) => void;
  readonly selection?: ReadonlySet<string>;
  readonly onSelectionChange?: (selection: ReadonlySet<string>) => void;
  /** Called to select a range with rows that are not loaded; by default only the loaded rows are selected. */
  readonly onSelectRange?: (first: number, last: number) => void;
  /** Called when a row is opened to show its details. */
  readonly onOpen?: (row: ShownVector, index: number) => void;
  readonly openId?: string | undefined;
  readonly sort?: SortState | undefined;
  readonly onSortChange?: (sort: SortState | undefined) => void;
  /** Pixels by column key. */
  readonly widths?: Readonly<Record<string, number>>;
  readonly onWidthsChange?: (widths: Readonly<Record<string, number>>) => void;
  /** `TALL_ROW_HEIGHT` or, by default, one line. */
  readonly rowHeight?: number;
  /** Must set the height of the table. */
  readonly className?: string | undefined;
}

export function VectorTable(props: VectorTableProps) {
  const { label, isCards = false, columns, rowCount, rowAt, selection, openId, sort } = props;
  const gridId = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const viewportHeight = useElementSize(scroller).height - (isCards ? 0 : HEADER_HEIGHT);
  const cardHeight = CARD_FRAME_HEIGHT + columns.length * CARD_LINE_HEIGHT;
  const rowHeight = isCards ? cardHeight : (props.rowHeight ?? ROW_HEIGHT);
  const area = useMemo(
    () => ({ rowCount, rowHeight, viewportHeight: Math.max(viewportHeight, 0) }),
    [rowCount, rowHeight, viewportHeight],
  );
  const { first, last, anchor, onScroll, showRow } = useScrollWindow(scroller, layer, area);
  const [ownWidths, setOwnWidths] = useState<Readonly<Record<string, number>>>({});
  const widths = props.widths ?? ownWidths;
  const grid = useGridState(props, area, showRow);
  const { onRangeChange } = props;
  useEffect(() => onRangeChange?.(first, last), [onRangeChange, first, last]);
  const isSelectable = selection !== undefined;
  const isActiveShown =
    grid.active.row === -1 || (grid.active.row >= first && grid.active.row < last);
  const slotCount = slotsOf(area);
  const changeWidth = (key: string, width: number) => {
    const next = { ...widths, [key]: width };
    if (props.onWidthsChange) props.onWidthsChange(next);
    else setOwnWidths(next);
  };
  const resizeActive = (step: number) => {
    const column = columns[grid.active.column - (isSelectable ? 1 : 0)];
    if (column) changeWidth(column.key, Math.max(48, (widths[column.key] ?? column.width) + step));
  };
  return (
    <div
      ref={scroller}
      role="grid"
      aria-label={label}
      aria-rowcount={rowCount + 1}
      aria-multiselectable={isSelectable || undefined}
      aria-activedescendant={isActiveShown ? cellId(gridId, grid.active) : undefined}
      tabIndex={0}
      className={classNames(
        styles.grid,
        isCards && styles.cards,
        !isCards && rowHeight > ROW_HEIGHT && styles.tall,
        props.className,
      )}
      style={sizesOf({ columns, widths, isSelectable, rowHeight })}
      onScroll={onScroll}
      onKeyDown={(event) => {
        const isResize = grid.active.row === -1 && event.shiftKey && event.key.startsWith('Arrow');
        if (isResize && (event.key === 'ArrowLeft' || event.key === 'ArrowRight')) {
          event.preventDefault();
          resizeActive(event.key === 'ArrowLeft' ? -WIDTH_STEP : WIDTH_STEP);
        } else grid.onKeyDown(event);
      }}
      onClick={grid.onClick}
    >
      <TableHeader
        gridId={gridId}
        isHidden={isCards}
        columns={columns}
        isSelectable={isSelectable}
        active={grid.active.row === -1 ? grid.active.column : undefined}
        sort={sort}
        onSort={props.onSortChange}
        widths={widths}
        onWidth={changeWidth}
      />
      <div role="rowgroup" className={styles.body} style={{ height: contentHeight(area) }}>
        <div ref={layer} role="presentation" className={styles.layer}>
          {Array.from({ length: last - first }, (_, i) => {
            const index = first + i;
            const row = rowAt(index);
            return (
              <TableBodyRow
                // Elements of rows that scroll out are reused, because creating elements is slow.
                key={index % slotCount}
                gridId={gridId}
                index={index}
                top={(index - anchor) * rowHeight}
                isCard={isCards}
                row={row}
                columns={columns}
                isSelected={isSelectable ? row !== undefined && selection.has(row.id) : undefined}
                isOpen={row !== undefined && row.id === openId}
                activeColumn={grid.active.row === index ? grid.active.column : undefined}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** The variables of the style sheet. Free width goes to the columns that grow, unless the user has set their width. */
function sizesOf({
  columns,
  widths,
  isSelectable,
  rowHeight,
}: {
  readonly columns: readonly VectorTableColumn[];
  readonly widths: Readonly<Record<string, number>>;
  readonly isSelectable: boolean;
  readonly rowHeight: number;
}): CSSProperties {
  const sized = columns.map(({ key, width, isGrowing = false }) => ({
    width: widths[key] ?? width,
    isGrowing: isGrowing && widths[key] === undefined,
  }));
  const all = [...(isSelectable ? [{ width: SELECTION_WIDTH, isGrowing: false }] : []), ...sized];
  const sizes = {
    '--columns': all
      .map(({ width, isGrowing }) => (isGrowing ? `minmax(${width}px, ${width}fr)` : `${width}px`))
      .join(' '),
    '--width': `${all.reduce((sum, { width }) => sum + width, 0)}px`,
    '--row-height': `${rowHeight}px`,
    '--card-line-height': `${CARD_LINE_HEIGHT}px`,
    '--header-height': `${HEADER_HEIGHT}px`,
  };
  return sizes as CSSProperties;
}

/** The active cell, and the handlers for keys and clicks. */
function useGridState(
  props: VectorTableProps,
  { viewportHeight, rowHeight }: ScrollArea,
  showRow: (row: number) => void,
) {
  const { columns, rowCount, rowAt, selection, onSelectionChange, onOpen } = props;
  const offset = selection === undefined ? 0 : 1;
  const [moved, setActive] = useState<ActiveCell>({ row: 0, column: 0 });
  const active = rowCount === 0 ? { ...moved, row: -1 } : clampRow(moved, rowCount);
  /** The start of the range that Shift extends. */
  const rangeStart = useRef(0);

  const selectRange = (to: number) => {
    if (selection === undefined) return;
    const first = Math.max(0, Math.min(rangeStart.current, to));
    const last = Math.max(rangeStart.current, to) + 1;
    const rows = Array.from({ length: last - first }, (_, i) => rowAt(first + i));
    if (rows.includes(undefined) && props.onSelectRange) props.onSelectRange(first, last);
    else
      onSelectionChange?.(
        withAll(
          selection,
          rows.flatMap((row) => row?.id ?? []),
        ),
      );
  };
  const toggle = (row: number) => {
    const vector = rowAt(row);
    rangeStart.current = row;
    if (vector && selection) onSelectionChange?.(toggled(selection, vector.id));
  };
  const sortBy = (column: VectorTableColumn | undefined) => {
    if (column?.isSortable) props.onSortChange?.(nextSort(props.sort, column.key));
  };
  const open = (row: number) => {
    const vector = rowAt(row);
    if (vector) onOpen?.(vector, row);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const extent = {
      rowCount,
      columnCount: columns.length + offset,
      pageRows: Math.max(1, Math.floor(viewportHeight / rowHeight) - 1),
    };
    const ctrlKey = event.ctrlKey || event.metaKey;
    const next = cellAfterKey(active, { key: event.key, ctrlKey }, extent);
    if (next !== undefined) {
      setActive(next);
      if (next.row >= 0) showRow(next.row);
      if (event.shiftKey) selectRange(next.row);
      else rangeStart.current = next.row;
    } else if (event.key === ' ' && active.row >= 0) toggle(active.row);
    else if (event.key === 'Enter' && !ctrlKey && active.row >= 0) open(active.row);
    else if (event.key === 'Enter' && !ctrlKey) sortBy(columns[active.column - offset]);
    else if (event.key === 'a' && ctrlKey && selection !== undefined) {
      rangeStart.current = 0;
      selectRange(rowCount - 1);
    } else return;
    event.preventDefault();
  };

  const onClick = (event: MouseEvent) => {
    const cell = (event.target as Element).closest<HTMLElement>('[data-column]');
    if (cell === null || (event.target as Element).closest('button, a') !== null) return;
    const row = Number(cell.closest<HTMLElement>('[data-row]')!.dataset.row);
    const column = Number(cell.dataset.column);
    setActive({ row, column });
    if (row < 0) sortBy(columns[column - offset]);
    else if (event.shiftKey) selectRange(row);
    else if (column < offset || event.ctrlKey || event.metaKey) toggle(row);
    else open(row);
  };
  return { active, onKeyDown, onClick };
}

function clampRow(cell: ActiveCell, rowCount: number): ActiveCell {
  return cell.row < rowCount ? cell : { ...cell, row: rowCount - 1 };
}

/** The maximum number of rows rendered at once. */
function slotsOf({ viewportHeight, rowHeight }: ScrollArea): number {
  return Math.ceil(viewportHeight / rowHeight) + EXTRA_ROWS;
}

/** The next of ascending, descending and unsorted. */
function nextSort(sort: SortState | undefined, key: string): SortState | undefined {
  if (sort?.key !== key) return { key, isDescending: false };
  return sort.isDescending ? undefined : { key, isDescending: true };
}
