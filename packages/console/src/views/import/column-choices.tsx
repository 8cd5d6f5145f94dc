// Chooses the columns for ids, vectors and metadata.

import { Checkbox, FieldGroup, SelectField } from '../../ui/field.js';
import { formatCount } from '../../ui/format.js';
import styles from './import.module.css';
import { type ImportDraft, withIdColumn, withVector } from './import-draft.js';
import { otherColumns } from './import-plan.js';
import type { FilePreview } from './import-reader.js';
import { changeDraft } from './import-session.js';

interface ColumnChoicesProps {
  readonly draft: ImportDraft;
  readonly preview: FilePreview;
}

export function ColumnChoices({ draft, preview }: ColumnChoicesProps) {
  const { columns, vectorChoices } = preview;
  const { idColumn, vector } = draft.plan;
  const chosen = vectorChoices.findIndex(
    ({ plan }) => JSON.stringify(plan) === JSON.stringify(vector),
  );
  return (
    <>
      <div className={styles.choices}>
        <SelectField
          label="Ids"
          hint="Without a column, the server generates ids."
          // The prefix keeps a column named `generated` apart from generated ids.
          value={idColumn === undefined ? 'generated' : `column ${idColumn}`}
          options={[
            { value: 'generated', label: 'generated' },
            ...columns.map((name) => ({ value: `column ${name}`, label: name })),
          ]}
          onChange={(value) => {
            const name = value === 'generated' ? undefined : value.slice('column '.length);
            changeDraft(withIdColumn(draft, columns, name));
          }}
        />
        <SelectField
          label="Vectors"
          hint={
            draft.dimension === undefined
              ? 'A model turns the texts into vectors. They stay part of the metadata.'
              : `${formatCount(draft.dimension)} values each.`
          }
          value={String(chosen)}
          options={vectorChoices.map(({ label, dimension }, at) => ({
            value: String(at),
            label:
              dimension === undefined
                ? `from the text in ${label}`
                : `${label} (${formatCount(dimension)} values)`,
          }))}
          onChange={(value) => {
            const { plan, dimension } = vectorChoices[Number(value)]!;
            changeDraft(withVector(draft, columns, plan, dimension));
          }}
        />
      </div>
      <MetadataChoices draft={draft} columns={columns} />
    </>
  );
}

interface MetadataChoicesProps {
  readonly draft: ImportDraft;
  readonly columns: readonly string[];
}

function MetadataChoices({ draft, columns }: MetadataChoicesProps) {
  const { idColumn, vector, metadataColumns } = draft.plan;
  const all = otherColumns(columns, idColumn, vector);
  const isText = (name: string) => vector.kind === 'text' && name === vector.column;
  const others = all.filter((name) => !isText(name));
  if (others.length === 0) return null;
  const set = (chosen: ReadonlySet<string>) => {
    const kept = all.filter((name) => isText(name) || chosen.has(name));
    changeDraft({ ...draft, plan: { ...draft.plan, metadataColumns: kept } });
  };
  return (
    <FieldGroup label="Metadata">
      <div className={styles.checkboxes}>
        {others.map((name) => (
          <Checkbox
            key={name}
            label={<span dir="auto">{name === 'metadata' ? 'metadata (its members)' : name}</span>}
            isChecked={metadataColumns.includes(name)}
            onChange={(isChecked) => {
              const chosen = new Set(metadataColumns);
              if (isChecked) chosen.add(name);
              else chosen.delete(name);
              set(chosen);
            }}
          />
        ))}
      </div>
    </FieldGroup>
  );
}
