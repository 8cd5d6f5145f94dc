// Adds a named or sparse vector to a collection, and drops one after its name has been typed.

import { type CollectionVector, VECTOR_MEMBERS } from '@sagitta/client';
import { useState } from 'react';
import { refreshCollection } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { ConfirmByName, Dialog, DialogForm } from '../../ui/dialog.js';
import { pluralize } from '../../ui/format.js';
import { notify } from '../../ui/notices.js';
import type { CollectionDialogProps } from '../collection-view-props.js';
import { EMPTY_VECTOR, parseVectorDraft } from './collection-draft.js';
import { VectorFields } from './collection-fields.js';

export function AddVectorDialog(props: CollectionDialogProps) {
  return (
    <Dialog title="Add a vector" isOpen={props.isOpen} onClose={props.onClose}>
      <AddVectorForm {...props} />
    </Dialog>
  );
}

function AddVectorForm({ collection: { id }, onClose }: CollectionDialogProps) {
  const [draft, setDraft] = useState(EMPTY_VECTOR);
  const vectors = parseVectorDraft(draft);
  const add = async () => {
    if (vectors === null) return;
    await session.get().client.collections.update(id, vectors);
    refreshCollection(id);
    notify(`Added ${draft.name} to ${id}.`);
    onClose();
  };
  return (
    <DialogForm action="Add" isReady={vectors !== null} onSubmit={add} onClose={onClose}>
      <VectorFields
        draft={draft}
        nameHint="Existing records lack the vector until they are updated."
        onChange={setDraft}
      />
    </DialogForm>
  );
}

interface DropVectorProps extends Omit<CollectionDialogProps, 'isOpen'> {
  /** Undefined while the dialog is closed. */
  readonly vector: CollectionVector | undefined;
}

export function DropVector({ collection, vector, onClose }: DropVectorProps) {
  const { id, vector_count: count } = collection;
  const name = vector?.name ?? '';
  const drop = async () => {
    if (vector === undefined) return;
    const change = { [VECTOR_MEMBERS[vector.kind]]: { [name]: null } };
    await session.get().client.collections.update(id, change);
    refreshCollection(id);
    notify(`Dropped ${name} from ${id}.`);
  };
  return (
    <ConfirmByName
      title="Drop the vector"
      name={name}
      action="Drop"
      isOpen={vector !== undefined}
      onClose={onClose}
      onConfirm={drop}
    >
      This removes {name} from all {pluralize(count, 'record')} of {id}. Their other vectors and
      their metadata stay. Only a backup can restore it.
    </ConfirmByName>
  );
}
