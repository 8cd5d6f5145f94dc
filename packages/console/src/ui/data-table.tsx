// A plain table of at most a few hundred records, which scrolls sideways on narrow pages.

import type { ReactNode } from 'react';
import styles from './data-table.module.css';

export interface DataColumn<Row> {
  readonly label: string;
  /** Whether only screen readers get the label. */
  readonly isLabelHidden?: boolean;
  readonly kind?: 'text' | 'number' | 'actions';
  /** Shown below the label. */
  readonly note?: ReactNode;
  readonly cell: (row: Row) => ReactNode;
}

interface DataTableProps<Row> {
  readonly label: string;
  /** The cells of the first column are row headers. */
  readonly columns: readonly DataColumn<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
}

export function DataTable<Row>({ label, columns, rows, keyOf }: DataTableProps<Row>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
    <section className={styles.scroll} aria-label={label} tabIndex={0}>
      <table className={styles.table}>
        <caption className="visually-hidden">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.label} scope="col" className={classOf(column)}>
                {column.isLabelHidden ? (
                  <span className="visually-hidden">{column.label}</span>
                ) : (
                  column.label
                )}
                {column.note !== undefined && <div>{column.note}</div>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column, at) =>
                at === 0 ? (
                  <th key={column.label} scope="row" className={classOf(column)}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.label} className={classOf(column)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function classOf({ kind = 'text' }: { readonly kind?: 'text' | 'number' | 'actions' }) {
  return kind === 'text' ? undefined : styles[kind];
}

interface TruncatedProps {
  readonly text: string;
  readonly isMuted?: boolean;
}

/** User text on one line, with the full text as its tooltip. */
export function Truncated({ text, isMuted = false }: TruncatedProps) {
  const className = isMuted ? `${styles.truncated} ${styles.muted}` : styles.truncated;
  return (
    <span className={className} title={text} dir="auto">
      {text}
    </span>
  );
}
