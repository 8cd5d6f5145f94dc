// A row of a table of vectors. It renders again only when what it shows changes.

import { Check } from 'lucide-react';
import { memo } from 'react';
import { classNames } from '../../ui/class-names.js';
import type { ShownVector } from './preview.js';
import type { ActiveCell } from './table-selection.js';
import type { TableColumn } from './vector-columns.js';
import styles from './vector-table.module.css';

/** Pixels of the column with the marks of selected rows. */
export const SELECTION_WIDTH = 40;

export function cellId(gridId: string, { row, column }: ActiveCell): string {
  return `${gridId}-${row}-${column}`;
}

interface TableBodyRowProps {
  readonly gridId: string;
  readonly index: number;
  /** Pixels from the top of the layer. */
  readonly top: number;
  /** Undefined while it is not loaded. */
  readonly row: ShownVector | undefined;
  readonly columns: readonly TableColumn[];
  /** Undefined when rows are not selected in this table. */
  readonly isSelected: boolean | undefined;
  readonly isOpen: boolean;
  /** The column of the active cell, if that is in this row. */
  readonly activeColumn: number | undefined;
}

export const TableBodyRow = memo(function TableBodyRow(props: TableBodyRowProps) {
  const { gridId, index, top, row, columns, isSelected, isOpen, activeColumn } = props;
  const offset = isSelected === undefined ? 0 : 1;
  // Attributes of cells cost time while the table scrolls: only the active one needs an id.
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
          {row === undefined ? <span className={styles.placeholder} /> : column.render(row, index)}
        </span>
      ))}
    </div>
  );
});
