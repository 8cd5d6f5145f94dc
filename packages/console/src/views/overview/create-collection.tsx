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
  type CollectionDraft,
  type DraftErrors,
  EMPTY_DRAFT,
  parseDraft,
  readRequest,
  requestOf,
} from '../collection/collection-draft.js';
import {
  EmbedField,
  ExpiryField,
  NodesField,
  Section,
  ShapeFields,
  TextFields,
  TypeRows,
  VectorRows,
} from '../collection/collection-fields.js';
import styles from '../collection/collection-fields.module.css';
import { LabelEditor } from '../collection/label-editor.js';
import { collectionPath } from '../routes.js';
import { isCreatingCollection } from './creating.js';

const draftStore = createStore<CollectionDraft>(EMPTY_DRAFT);

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
      <MainFields draft={draft} errors={errors} />
      <SearchSections draft={draft} errors={errors} />
      <OtherSections draft={draft} errors={errors} />
      <RequestSection draft={draft} errors={errors} />
    </DialogForm>
  );
}

interface DraftProps {
  readonly draft: CollectionDraft;
  readonly errors: DraftErrors;
}

/** A change of a field replaces what was typed as JSON, which has the same values unless it was invalid. */
function change(part: Partial<CollectionDraft>): void {
  draftStore.set({ ...draftStore.get(), json: null, ...part });
}

function MainFields({ draft, errors }: DraftProps) {
  return (
    <>
      <TextField label="Id" error={errors.id} value={draft.id} onChange={(id) => change({ id })} />
      <EmbedField
        value={draft.embed}
        error={errors.embed}
        onChange={(embed) => change({ embed })}
      />
      {draft.embed.kind !== 'builtin' && (
        <>
          <ShapeFields shape={draft} error={errors.dimension} onChange={change} />
          <p className={styles.note}>
            Dimension and element type cannot be changed later, nor can the metric, but a query can
            use another one.
          </p>
        </>
      )}
    </>
  );
}

function SearchSections({ draft, errors }: DraftProps) {
  return (
    <>
      <Section
        title="Full-text search"
        note="cannot be changed later"
        isOpen={draft.text.isOn}
        error={errors.text}
      >
        <TextFields value={draft.text} error={errors.text} onChange={(text) => change({ text })} />
      </Section>
      <Section
        title="Named and sparse vectors"
        note="can be added and dropped later"
        isOpen={draft.vectors.length > 0}
        error={errors.vectors}
      >
        <VectorRows
          value={draft.vectors}
          error={errors.vectors}
          onChange={(vectors) => change({ vectors })}
        />
      </Section>
    </>
  );
}

function OtherSections({ draft, errors }: DraftProps) {
  return (
    <>
      <Section
        title="Metadata types"
        note="can be changed later"
        isOpen={draft.types.length > 0}
        error={errors.types}
      >
        <TypeRows
          value={draft.types}
          error={errors.types}
          onChange={(types) => change({ types })}
        />
      </Section>
      <Section
        title="Description, labels, expiry"
        note="can be changed later"
        isOpen={[draft.description, draft.ttl, draft.nodes].some((text) => text !== '')}
        error={errors.ttl ?? errors.labels ?? errors.nodes}
      >
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
        <ExpiryField value={draft.ttl} error={errors.ttl} onChange={(ttl) => change({ ttl })} />
        <NodesField
          value={draft.nodes}
          error={errors.nodes}
          onChange={(nodes) => change({ nodes })}
        />
      </Section>
    </>
  );
}

/** The request, which can also be edited as it is. The fields follow as long as it is valid. */
function RequestSection({ draft, errors }: DraftProps) {
  const { json } = draft;
  const found = json === null ? draft : readRequest(json);
  const error = typeof found === 'string' ? found : undefined;
  const edit = (text: string) => {
    const read = readRequest(text);
    draftStore.set({ ...(typeof read === 'string' ? draft : read), json: text });
  };
  return (
    <Section
      title="Request as JSON"
      note="POST /v1/collections"
      isOpen={json !== null}
      error={errors.json}
    >
      <TextAreaField
        label="Request"
        hint="What the fields say. It can be edited, and has settings without a field, such as stop words."
        error={error}
        rows={10}
        value={json ?? JSON.stringify(requestOf(draft), null, 2)}
        onChange={edit}
        onBlur={() => error === undefined && change({})}
      />
    </Section>
  );
}
