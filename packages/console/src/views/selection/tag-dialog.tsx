// Sets or removes a metadata member of the selected vectors.

import type { CollectionRecord } from '@sagitta/client';
import { useState } from 'react';
import type { Json, JsonObject } from '../../../../../src/common/types.js';
import { patchByIds } from '../../api/by-ids.js';
import { queryClient } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { Dialog, DialogForm } from '../../ui/dialog.js';
import { Checkbox, Field, TextField } from '../../ui/field.js';
import { pluralize } from '../../ui/format.js';
import { notify } from '../../ui/notices.js';
import { SuggestInput } from '../../ui/suggest-input.js';
import { parseScalar } from '../filter/filter-values.js';
import { usePathSuggestions } from '../filter/use-suggestions.js';

interface TagDialogProps {
  readonly collection: CollectionRecord;
  readonly ids: readonly string[];
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onTagged?: () => void;
}

export function TagDialog(props: TagDialogProps) {
  const title = `Tag ${pluralize(props.ids.length, 'vector')}`;
  return (
    <Dialog title={title} isOpen={props.isOpen} onClose={props.onClose}>
      <TagForm {...props} />
    </Dialog>
  );
}

function TagForm({ collection, ids, onClose, onTagged }: TagDialogProps) {
  const [path, setPath] = useState('tag');
  const [text, setText] = useState('');
  const [isRemoving, setRemoving] = useState(false);
  const suggestions = usePathSuggestions(collection, path).filter(
    ({ value }) => !value.startsWith('$'),
  );
  const value = isRemoving ? null : parseScalar(text, false);
  const isReady = path !== '' && value !== undefined;
  const save = async () => {
    if (!isReady) return;
    try {
      const vectors = session.get().client.collection(collection.id);
      const count = await patchByIds(vectors, ids, patchAt(path, value));
      notify(`Changed ${pluralize(count, 'vector')}.`);
      onTagged?.();
      onClose();
    } finally {
      void queryClient.invalidateQueries({ queryKey: ['collection', collection.id] });
    }
  };
  return (
    <DialogForm
      action={isRemoving ? 'Remove' : 'Set'}
      isReady={isReady}
      onSubmit={save}
      onClose={onClose}
    >
      <Field label="Metadata path" hint="Use dots for nested objects.">
        {({ id, 'aria-describedby': describedBy }) => (
          <SuggestInput
            id={id}
            describedBy={describedBy}
            value={path}
            suggestions={suggestions}
            onChange={setPath}
          />
        )}
      </Field>
      <TextField
        label="Value"
        hint="A number, true, false or text. Put text that looks like one of these in quotes."
        value={text}
        disabled={isRemoving}
        onChange={setText}
      />
      <Checkbox label="Remove it instead" isChecked={isRemoving} onChange={setRemoving} />
    </DialogForm>
  );
}

function patchAt(path: string, value: Json): JsonObject {
  return path
    .split('.')
    .reduceRight<Json>((inner, name) => ({ [name]: inner }), value) as JsonObject;
}
