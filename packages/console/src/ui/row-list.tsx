// A list of rows in a form: each has its own controls and can be removed, and a button adds one.

import { Plus, X } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button, IconButton } from './button.js';
import { FieldGroup, GroupError } from './field.js';
import styles from './row-list.module.css';

interface RowListProps<Row> {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  /** What a row is, such as `label`. */
  readonly what: string;
  readonly rows: readonly Row[];
  /** The row that the button adds. */
  readonly empty: Row;
  readonly onChange: (rows: readonly Row[]) => void;
  /** The controls of a row; `number` counts from 1, for their labels. */
  readonly children: (row: Row, change: (row: Row) => void, number: number) => ReactNode;
}

export function RowList<Row>(props: RowListProps<Row>) {
  const { label, hint, error, what, rows, empty, onChange, children } = props;
  return (
    <FieldGroup label={label}>
      {hint !== undefined && <p className={styles.hint}>{hint}</p>}
      {rows.map((row, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have nothing else that tells them apart
        <div key={at} className={styles.row}>
          <div className={styles.controls}>
            {children(
              row,
              (changed) => onChange(rows.map((other, i) => (i === at ? changed : other))),
              at + 1,
            )}
          </div>
          <IconButton
            icon={X}
            label={`Remove ${what} ${at + 1}`}
            onClick={() => onChange(rows.filter((_, other) => other !== at))}
          />
        </div>
      ))}
      <GroupError error={error} />
      <Button
        icon={Plus}
        kind="quiet"
        className={styles.add}
        onClick={() => onChange([...rows, empty])}
      >
        Add a {what}
      </Button>
    </FieldGroup>
  );
}
