// The dialog that creates an empty collection. The input is kept until the collection exists.

import { Plus } from 'lucide-react';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { queryClient, useLimits } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { createStore, useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { Dialog, DialogForm } from '../../ui/dialog.js';
import { TextAreaField, TextField } from '../../ui/field.js';
import { notify } from '../../ui/notices.js';
import {
  ADVANCED_MEMBERS,
  type CollectionDraft,
  type DraftErrors,
  EMPTY_DRAFT,
  parseDraft,
} from '../collection/collection-draft.js';
import { LabelEditor } from '../collection/label-editor.js';
import { collectionPath } from '../routes.js';
import { MetricField } from '../vector-fields.js';
import { isCreatingCollection } from './creating.js';
import styles from './overview.module.css';

const draftStore = createStore<CollectionDraft>(EMPTY_DRAFT);
const ADVANCED_EXAMPLE = `{
  "vectors": { "title": { "dimension": 384 } },
  "text": { "fields": ["title"], "language": "english" },
  "ttl_seconds": 86400
}`;

export function NewCollectionButton() {
  const isOpen = useStore(isCreatingCollection);
  const close = () => isCreatingCollection.set(false);
  return (
    <>
      <Button kind="primary" icon={Plus} onClick={() => isCreatingCollection.set(true)}>
        New collection
      </Button>
      <Dialog title="New collection" isOpen={isOpen} onClose={close}>
        <CreateForm onClose={close} />
      </Dialog>
    </>
  );
}

function CreateForm({ onClose }: { readonly onClose: () => void }) {
  const draft = useStore(draftStore);
  const [errors, setErrors] = useState<DraftErrors>({});
  const { data: limits } = useLimits();
  const [, navigate] = useLocation();
  const create = async () => {
    const parsed = parseDraft(draft, limits?.dimension_max ?? Number.MAX_SAFE_INTEGER);
    setErrors(parsed.kind === 'invalid' ? parsed.errors : {});
    if (parsed.kind === 'invalid') return;
    const { id } = await session.get().client.collections.create(parsed.input);
    draftStore.set(EMPTY_DRAFT);
    void queryClient.invalidateQueries({ queryKey: ['collections'] });
    notify(`Created ${id}.`);
    onClose();
    navigate(collectionPath(id));
  };
  return (
    <DialogForm action="Create" onSubmit={create} onClose={onClose}>
      <DraftFields draft={draft} errors={errors} />
    </DialogForm>
  );
}

interface DraftFieldsProps {
  readonly draft: CollectionDraft;
  readonly errors: DraftErrors;
}

function DraftFields({ draft, errors }: DraftFieldsProps) {
  const change = (part: Partial<CollectionDraft>) => draftStore.set({ ...draft, ...part });
  return (
    <>
      <TextField label="Id" error={errors.id} value={draft.id} onChange={(id) => change({ id })} />
      <div className={styles.pair}>
        <TextField
          label="Dimension"
          error={errors.dimension}
          hint="The number of values per vector."
          inputMode="numeric"
          value={draft.dimension}
          onChange={(dimension) => change({ dimension })}
        />
        <MetricField
          hint="Queries can use a different one."
          metric={draft.metric}
          onChange={(metric) => change({ metric })}
        />
      </div>
      <TextField
        label="Description"
        dir="auto"
        value={draft.description}
        onChange={(description) => change({ description })}
      />
      <LabelEditor
        rows={draft.labels}
        onChange={(labels) => change({ labels })}
        error={errors.labels}
      />
      <details className={styles.advanced} open={draft.advanced !== ''}>
        <summary>Named and sparse vectors, text, expiry, types</summary>
        <TextAreaField
          label="Other settings as JSON"
          error={errors.advanced}
          hint={`Members: ${ADVANCED_MEMBERS.join(', ')}. Without a dimension, at least one of the first three is required.`}
          rows={6}
          placeholder={ADVANCED_EXAMPLE}
          value={draft.advanced}
          onChange={(advanced) => change({ advanced })}
        />
      </details>
    </>
  );
}
