// Edits labels: pairs of a name and a value.

import { Plus, X } from 'lucide-react';
import { Button, IconButton } from '../../ui/button.js';
import { FieldGroup, GroupError, TextBox } from '../../ui/field.js';
import type { LabelRow } from './collection-draft.js';
import styles from './label-editor.module.css';

interface LabelEditorProps {
  readonly rows: readonly LabelRow[];
  readonly onChange: (rows: readonly LabelRow[]) => void;
  readonly error: string | undefined;
}

export function LabelEditor({ rows, onChange, error }: LabelEditorProps) {
  const change = (at: number, part: Partial<LabelRow>) =>
    onChange(rows.map((row, other) => (other === at ? { ...row, ...part } : row)));
  return (
    <FieldGroup label="Labels">
      {rows.map((row, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have nothing else that tells them apart
        <div key={at} className={styles.row}>
          <TextBox
            aria-label={`Name of label ${at + 1}`}
            placeholder="name"
            value={row.name}
            onChange={(name) => change(at, { name })}
          />
          <TextBox
            aria-label={`Value of label ${at + 1}`}
            placeholder="value"
            value={row.value}
            onChange={(value) => change(at, { value })}
          />
          <IconButton
            icon={X}
            label={`Remove label ${at + 1}`}
            onClick={() => onChange(rows.filter((_, other) => other !== at))}
          />
        </div>
      ))}
      <GroupError error={error} />
      <Button
        icon={Plus}
        kind="quiet"
        className={styles.add}
        onClick={() => onChange([...rows, { name: '', value: '' }])}
      >
        Add a label
      </Button>
    </FieldGroup>
  );
}
