// Clones or renames a collection.

import { useState } from 'react';
import { useLocation } from 'wouter';
import { queryClient } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { Dialog, DialogForm } from '../../ui/dialog.js';
import { TextField } from '../../ui/field.js';
import { notify } from '../../ui/notices.js';
import type { CollectionDialogProps } from '../collection-view-props.js';
import { collectionPath } from '../routes.js';

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
