// Edits the description, the labels and the expiry of a collection.

import { useState } from 'react';
import { queryClient } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { Dialog, DialogForm } from '../../ui/dialog.js';
import { TextAreaField, TextField } from '../../ui/field.js';
import { notify } from '../../ui/notices.js';
import type { CollectionDialogProps } from '../collection-view-props.js';
import { parseLabels, parseTtl, rowsOfLabels } from './collection-draft.js';
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
  const [description, setDescription] = useState(collection.description ?? '');
  const [rows, setRows] = useState(rowsOfLabels(collection.labels));
  const [ttl, setTtl] = useState(collection.ttl_seconds?.toString() ?? '');
  const labels = parseLabels(rows);
  const seconds = parseTtl(ttl);
  const isValid = typeof labels !== 'string' && typeof seconds !== 'string';
  const save = async () => {
    if (!isValid) return;
    await session.get().client.collections.update(id, {
      description: description === '' ? null : description,
      labels,
      ttl_seconds: seconds,
    });
    void queryClient.invalidateQueries({ queryKey: ['collection', id] });
    void queryClient.invalidateQueries({ queryKey: ['collections'] });
    notify(`Saved ${id}.`);
    onClose();
  };
  return (
    <DialogForm action="Save" isReady={isValid} onSubmit={save} onClose={onClose}>
      <TextAreaField label="Description" dir="auto" value={description} onChange={setDescription} />
      <LabelEditor
        rows={rows}
        onChange={setRows}
        error={typeof labels === 'string' ? labels : undefined}
      />
      <TextField
        label="Vectors expire after (seconds)"
        hint="Leave empty for no expiry. A change applies to later writes."
        error={typeof seconds === 'string' ? seconds : undefined}
        inputMode="numeric"
        value={ttl}
        onChange={setTtl}
      />
    </DialogForm>
  );
}
