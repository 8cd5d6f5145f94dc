// The header of a table of vectors, with sorting and column widths.

import { ArrowDown, ArrowUp } from 'lucide-react';
import type { PointerEvent } from 'react';
import { classNames } from '../../ui/class-names.js';
import { cellId } from './table-row.js';
import type { VectorTableColumn } from './vector-columns.js';
import styles from './vector-table.module.css';

export interface SortState {
  /** The key of a column. */
  readonly key: string;
  readonly isDescending: boolean;
}

/** The number of pixels by which a key changes the width of a column. */
export const WIDTH_STEP = 24;
const WIDTH_MIN = 48;
const WIDTH_MAX = 1_600;

interface TableHeaderProps {
  readonly gridId: string;
  /** Whether only screen readers get the header. */
  readonly isHidden: boolean;
  readonly columns: readonly VectorTableColumn[];
  readonly isSelectable: boolean;
  /** The column of the active cell, if it is in the header. */
  readonly active: number | undefined;
  readonly sort: SortState | undefined;
  readonly onSort: ((sort: SortState | undefined) => void) | undefined;
  readonly widths: Readonly<Record<string, number>>;
  readonly onWidth: (key: string, width: number) => void;
}

export function TableHeader(props: TableHeaderProps) {
  const { gridId, isHidden, columns, isSelectable, active, sort, onSort, widths, onWidth } = props;
  const offset = isSelectable ? 1 : 0;
  return (
    <div role="rowgroup" className={isHidden ? 'visually-hidden' : styles.header}>
      <div role="row" aria-rowindex={1} data-row={-1} className={styles.row}>
        {isSelectable && (
          <span
            role="columnheader"
            id={cellId(gridId, { row: -1, column: 0 })}
            data-column={0}
            className={classNames(styles.headerCell, active === 0 && styles.active)}
          >
            <span className="visually-hidden">Selected</span>
          </span>
        )}
        {columns.map((column, i) => {
          const at = i + offset;
          const isSorted = sort?.key === column.key;
          const Arrow = sort?.isDescending ? ArrowDown : ArrowUp;
          return (
            <span
              key={column.key}
              role="columnheader"
              id={cellId(gridId, { row: -1, column: at })}
              aria-sort={isSorted ? (sort.isDescending ? 'descending' : 'ascending') : undefined}
              data-column={at}
              className={classNames(
                styles.headerCell,
                column.isNumber && styles.number,
                column.isSortable && onSort && styles.sortable,
                active === at && styles.active,
              )}
              title={column.label}
            >
              <bdi className={styles.headerLabel}>{column.label}</bdi>
              {isSorted && <Arrow size={13} aria-hidden />}
              <ResizeHandle
                width={widths[column.key] ?? column.width}
                onWidth={(width) => onWidth(column.key, width)}
              />
            </span>
          );
        })}
      </div>
    </div>
  );
}

interface ResizeHandleProps {
  readonly width: number;
  readonly onWidth: (width: number) => void;
}

/** The handle for the pointer; the table handles the keys. */
function ResizeHandle({ width, onWidth }: ResizeHandleProps) {
  const begin = (down: PointerEvent<HTMLElement>) => {
    const handle = down.currentTarget;
    handle.setPointerCapture(down.pointerId);
    handle.onpointermove = (move) => {
      const next = width + move.clientX - down.clientX;
      onWidth(Math.round(Math.min(Math.max(next, WIDTH_MIN), WIDTH_MAX)));
    };
    handle.onpointerup = () => {
      handle.onpointermove = null;
      handle.onpointerup = null;
    };
  };
  return (
    <span
      aria-hidden
      className={styles.handle}
      onPointerDown={begin}
      onClick={(event) => event.stopPropagation()}
    />
  );
}
