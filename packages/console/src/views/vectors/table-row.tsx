// A row of a table of vectors. It is rendered again only when its contents change.

import { Check } from 'lucide-react';
import { memo } from 'react';
import { classNames } from '../../ui/class-names.js';
import type { ShownVector } from './preview.js';
import type { ActiveCell } from './table-selection.js';
import type { VectorTableColumn } from './vector-columns.js';
import styles from './vector-table.module.css';

/** The width in pixels of the column with check boxes. */
export const SELECTION_WIDTH = 40;

export function cellId(gridId: string, { row, column }: ActiveCell): string {
  return `${gridId}-${row}-${column}`;
}

interface TableBodyRowProps {
  readonly gridId: string;
  readonly index: number;
  /** Pixels from the top of the layer. */
  readonly top: number;
  /** Undefined while the row is loading. */
  readonly row: ShownVector | undefined;
  readonly columns: readonly VectorTableColumn[];
  /** Whether each cell but the first shows the label of its column. */
  readonly isCard: boolean;
  /** Undefined if the table does not support selection. */
  readonly isSelected: boolean | undefined;
  readonly isOpen: boolean;
  /** The column of the active cell, if it is in this row. */
  readonly activeColumn: number | undefined;
}

export const TableBodyRow = memo(function TableBodyRow(props: TableBodyRowProps) {
  const { gridId, index, top, row, columns, isCard, isSelected, isOpen, activeColumn } = props;
  const offset = isSelected === undefined ? 0 : 1;
  // Attributes slow down scrolling, so only the active cell gets an id.
  const cell = (column: number) => ({
    'data-column': column,
    id: column === activeColumn ? cellId(gridId, { row: index, column }) : undefined,
  });
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      data-row={index}
      aria-selected={isSelected}
      className={classNames(
        styles.row,
        styles.bodyRow,
        isSelected && styles.selected,
        isOpen && styles.open,
      )}
      style={{ top }}
      // A row can be dropped where an id is expected, such as into the box of a query.
      draggable={row !== undefined}
      onDragStart={(event) => {
        event.dataTransfer.setData('text/plain', JSON.stringify({ id: row?.id }));
        event.dataTransfer.effectAllowed = 'copy';
      }}
    >
      {isSelected !== undefined && (
        <span
          role="gridcell"
          {...cell(0)}
          className={classNames(styles.mark, activeColumn === 0 && styles.active)}
        >
          <span className={styles.box}>{isSelected && <Check size={13} aria-hidden />}</span>
          <span className="visually-hidden">{isSelected ? 'selected' : 'not selected'}</span>
        </span>
      )}
      {columns.map((column, i) => (
        <span
          key={column.key}
          role="gridcell"
          {...cell(i + offset)}
          className={classNames(
            styles.cell,
            column.isNumber && styles.number,
            activeColumn === i + offset && styles.active,
          )}
        >
          {isCard && i > 0 && (
            <span aria-hidden className={styles.cardLabel}>
              {column.label}
            </span>
          )}
          {row === undefined ? <span className={styles.placeholder} /> : column.render(row, index)}
        </span>
      ))}
    </div>
  );
});
