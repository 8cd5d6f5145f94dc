// Chooses the target of an import: a new or an existing collection.

import type { CollectionRecord } from '@sagitta/client';
import { SelectField, TextField } from '../../ui/field.js';
import { formatCount, pluralize } from '../../ui/format.js';
import { MetricField } from '../vector-fields.js';
import styles from './import.module.css';
import { accepts, type ImportDraft } from './import-draft.js';
import { changeDraft } from './import-session.js';

interface TargetChoicesProps {
  readonly draft: ImportDraft;
  readonly collections: readonly CollectionRecord[];
}

const KINDS = [
  { value: 'new', label: 'a new collection' },
  { value: 'existing', label: 'an existing collection' },
];

export function TargetChoices({ draft, collections }: TargetChoicesProps) {
  const fitting = collections.filter((collection) => accepts(collection, draft.dimension));
  const what =
    draft.dimension === undefined
      ? 'a model for texts'
      : `vectors of ${formatCount(draft.dimension)} values`;
  return (
    <div className={styles.choices}>
      <SelectField
        label="Import into"
        value={draft.isNew ? 'new' : 'existing'}
        options={KINDS}
        onChange={(kind) => changeDraft({ ...draft, isNew: kind === 'new' })}
      />
      {draft.isNew ? (
        <NewCollection draft={draft} />
      ) : (
        <SelectField
          label="Collection"
          hint={`${pluralize(fitting.length, 'collection')} with ${what}.`}
          value={fitting.some(({ id }) => id === draft.collectionId) ? draft.collectionId : ''}
          options={[
            { value: '', label: 'choose one' },
            ...fitting.map(({ id }) => ({ value: id, label: id })),
          ]}
          onChange={(collectionId) => changeDraft({ ...draft, collectionId })}
        />
      )}
    </div>
  );
}

function NewCollection({ draft }: { readonly draft: ImportDraft }) {
  return (
    <>
      <TextField
        label="Name"
        value={draft.collectionId}
        onChange={(collectionId) => changeDraft({ ...draft, collectionId })}
      />
      <MetricField metric={draft.metric} onChange={(metric) => changeDraft({ ...draft, metric })} />
    </>
  );
}
