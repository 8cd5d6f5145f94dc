// Adds a named or sparse vector to a collection, and drops one after its name was typed.

import { useState } from 'react';
import { VALUE_METRICS } from '../../../common/types.js';
import { queryClient } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { ConfirmByName, Dialog, DialogForm } from '../../ui/dialog.js';
import { SelectField, TextField } from '../../ui/field.js';
import { pluralize } from '../../ui/format.js';
import { notify } from '../../ui/notices.js';
import type { CollectionDialogProps } from './collection-dialog-props.js';
import { EMPTY_VECTOR, parseVector, type VectorDraft } from './collection-draft.js';

const KINDS: readonly { readonly value: VectorDraft['kind']; readonly label: string }[] = [
  { value: 'one', label: 'One vector' },
  { value: 'multi', label: 'List of vectors' },
  { value: 'sparse', label: 'Sparse' },
];

export function AddVectorDialog(props: CollectionDialogProps) {
  return (
    <Dialog title="Add a vector" isOpen={props.isOpen} onClose={props.onClose}>
      <AddVectorForm {...props} />
    </Dialog>
  );
}

function AddVectorForm({ collection: { id }, onClose }: CollectionDialogProps) {
  const [draft, setDraft] = useState(EMPTY_VECTOR);
  const change = (part: Partial<VectorDraft>) => setDraft({ ...draft, ...part });
  const vectors = parseVector(draft);
  const add = async () => {
    if (vectors === null) return;
    await session.get().client.collections.update(id, vectors);
    refresh(id);
    notify(`Added ${draft.name} to ${id}.`);
    onClose();
  };
  return (
    <DialogForm action="Add" isReady={vectors !== null} onSubmit={add} onClose={onClose}>
      <TextField
        label="Name"
        hint="Records lack the vector until a write brings it."
        value={draft.name}
        onChange={(name) => change({ name })}
      />
      <SelectField
        label="Kind"
        options={KINDS}
        value={draft.kind}
        onChange={(kind) => change({ kind })}
      />
      {draft.kind !== 'sparse' && (
        <>
          <TextField
            label="Dimension"
            inputMode="numeric"
            value={draft.dimension}
            onChange={(dimension) => change({ dimension })}
          />
          <SelectField
            label="Metric"
            options={VALUE_METRICS.map((value) => ({ value, label: value }))}
            value={draft.metric}
            onChange={(metric) => change({ metric })}
          />
        </>
      )}
    </DialogForm>
  );
}

interface DropVectorProps extends CollectionDialogProps {
  readonly name: string;
}

export function DropVector({ collection, name, isOpen, onClose }: DropVectorProps) {
  const { id, vector_count: count } = collection;
  const drop = async () => {
    const isSparse = Object.hasOwn(collection.sparse_vectors ?? {}, name);
    const dropped = { [name]: null };
    const change = isSparse ? { sparse_vectors: dropped } : { vectors: dropped };
    await session.get().client.collections.update(id, change);
    refresh(id);
    notify(`Dropped ${name} from ${id}.`);
  };
  return (
    <ConfirmByName
      title="Drop the vector"
      name={name}
      action="Drop"
      isOpen={isOpen}
      onClose={onClose}
      onConfirm={drop}
    >
      This removes {name} from all {pluralize(count, 'record')} of {id}; their other vectors and
      their metadata stay. Only a backup brings it back.
    </ConfirmByName>
  );
}

function refresh(id: string): void {
  void queryClient.invalidateQueries({ queryKey: ['collection', id] });
  void queryClient.invalidateQueries({ queryKey: ['collections'] });
}
