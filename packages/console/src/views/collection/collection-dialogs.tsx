// The dialogs that edit, clone, rename and delete a collection.

import { useState } from 'react';
import { useLocation } from 'wouter';
import { queryClient, refreshCollection } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { ConfirmByName, Dialog, DialogForm } from '../../ui/dialog.js';
import { TextAreaField, TextField } from '../../ui/field.js';
import { pluralize } from '../../ui/format.js';
import { notify } from '../../ui/notices.js';
import type { CollectionDialogProps } from '../collection-view-props.js';
import { collectionPath } from '../routes.js';
import {
  changeOf,
  findSettingsErrors,
  type SettingsDraft,
  settingsOf,
} from './collection-draft.js';
import { EmbedField, ExpiryField, NodesField, TypeRows } from './collection-fields.js';
import styles from './collection-fields.module.css';
import { LabelEditor } from './label-editor.js';

export function EditDialog(props: CollectionDialogProps) {
  return (
    <Dialog title="Edit the collection" isOpen={props.isOpen} onClose={props.onClose}>
      <EditForm {...props} />
    </Dialog>
  );
}

function EditForm({ collection, onClose }: CollectionDialogProps) {
  const { id } = collection;
  // What the dialog began with, so that only what was edited is changed.
  const [before] = useState(() => settingsOf(collection));
  const [draft, setDraft] = useState(before);
  const change = (part: Partial<SettingsDraft>) => setDraft({ ...draft, ...part });
  const errors = findSettingsErrors(draft);
  const isValid = Object.keys(errors).length === 0;
  const save = async () => {
    await session.get().client.collections.update(id, changeOf(before, draft));
    refreshCollection(id);
    notify(`Saved ${id}.`);
    onClose();
  };
  return (
    <DialogForm action="Save" isReady={isValid} onSubmit={save} onClose={onClose}>
      <TextAreaField
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
      <TypeRows value={draft.types} error={errors.types} onChange={(types) => change({ types })} />
      <ExpiryField value={draft.ttl} error={errors.ttl} onChange={(ttl) => change({ ttl })} />
      <EmbedField
        value={draft.embed}
        error={errors.embed}
        onChange={(embed) => change({ embed })}
      />
      <NodesField
        value={draft.nodes}
        error={errors.nodes}
        onChange={(nodes) => change({ nodes })}
      />
      <p className={styles.note}>
        Vectors are added and dropped in the schema view. Dimension, metric, element type and
        full-text search cannot be changed: they need a new collection.
      </p>
    </DialogForm>
  );
}

export function CloneDialog({ collection, isOpen, onClose }: CollectionDialogProps) {
  return (
    <Dialog title="Clone the collection" isOpen={isOpen} onClose={onClose}>
      <NewIdForm
        initialId={`${collection.id}-copy`}
        hint="The clone starts with the same vectors and settings; later changes are independent."
        action="Clone"
        onClose={onClose}
        run={async (id) => {
          await session.get().client.collections.clone(collection.id, { id });
          notify(`Cloned ${collection.id} to ${id}.`);
        }}
      />
    </Dialog>
  );
}

export function RenameDialog({ collection, isOpen, onClose }: CollectionDialogProps) {
  return (
    <Dialog title="Rename the collection" isOpen={isOpen} onClose={onClose}>
      <NewIdForm
        initialId={collection.id}
        hint="Requests with the old id will fail, unless you make it an alias."
        action="Rename"
        onClose={onClose}
        run={async (id) => {
          await session.get().client.collections.rename(collection.id, id);
          notify(`Renamed ${collection.id} to ${id}.`);
        }}
      />
    </Dialog>
  );
}

interface NewIdFormProps {
  readonly initialId: string;
  readonly hint: string;
  readonly action: string;
  readonly onClose: () => void;
  readonly run: (id: string) => Promise<void>;
}

function NewIdForm({ initialId, hint, action, onClose, run }: NewIdFormProps) {
  const [id, setId] = useState(initialId);
  const [, navigate] = useLocation();
  const submit = async () => {
    await run(id);
    void queryClient.invalidateQueries({ queryKey: ['collections'] });
    onClose();
    navigate(collectionPath(id));
  };
  return (
    <DialogForm action={action} isReady={id !== ''} onSubmit={submit} onClose={onClose}>
      <TextField label="New id" hint={hint} value={id} onChange={setId} />
    </DialogForm>
  );
}

export function DeleteCollection({ collection, isOpen, onClose }: CollectionDialogProps) {
  const [, navigate] = useLocation();
  const { id } = collection;
  const remove = async () => {
    const { vector_count: count } = await session.get().client.collections.delete(id);
    navigate('/');
    queryClient.removeQueries({ queryKey: ['collection', id] });
    void queryClient.invalidateQueries({ queryKey: ['collections'] });
    notify(`Deleted ${id} with ${pluralize(count, 'vector')}.`);
  };
  return (
    <ConfirmByName
      title="Delete the collection"
      name={id}
      action="Delete"
      isOpen={isOpen}
      onClose={onClose}
      onConfirm={remove}
    >
      This deletes {pluralize(collection.vector_count, 'vector')} with their metadata. Only a backup
      can restore them.
    </ConfirmByName>
  );
}
