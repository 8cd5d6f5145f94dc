// Edits labels: pairs of a name and a value.

import { TextBox } from '../../ui/field.js';
import { RowList } from '../../ui/row-list.js';
import type { LabelRow } from './collection-draft.js';
import styles from './collection-fields.module.css';

interface LabelEditorProps {
  readonly rows: readonly LabelRow[];
  readonly onChange: (rows: readonly LabelRow[]) => void;
  readonly error: string | undefined;
}

const EMPTY: LabelRow = { name: '', value: '' };

export function LabelEditor({ rows, onChange, error }: LabelEditorProps) {
  return (
    <RowList
      label="Labels"
      what="label"
      rows={rows}
      empty={EMPTY}
      error={error}
      onChange={onChange}
    >
      {(row, change, number) => (
        <div className={styles.unequal}>
          <TextBox
            aria-label={`Name of label ${number}`}
            placeholder="name"
            value={row.name}
            onChange={(name) => change({ ...row, name })}
          />
          <TextBox
            aria-label={`Value of label ${number}`}
            placeholder="value"
            value={row.value}
            onChange={(value) => change({ ...row, value })}
          />
        </div>
      )}
    </RowList>
  );
}
