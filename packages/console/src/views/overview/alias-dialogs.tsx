// The dialogs that create an alias, point one to another collection, and delete one.

import type { AliasRecord } from '@sagitta/client';
import { useState } from 'react';
import { queryClient, useCollections } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { Dialog, DialogForm } from '../../ui/dialog.js';
import { SelectField, TextField } from '../../ui/field.js';
import { notify } from '../../ui/notices.js';

interface AliasDialogProps {
  /** The alias to change; undefined for a new one. */
  readonly alias: AliasRecord | undefined;
  /** Aliases that exist, whose names a new one must not have. */
  readonly taken: readonly AliasRecord[];
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

export function AliasDialog(props: AliasDialogProps) {
  const { alias, isOpen, onClose } = props;
  const title = alias === undefined ? 'New alias' : `Point ${alias.name} to another collection`;
  return (
    <Dialog title={title} isOpen={isOpen} onClose={onClose}>
      <AliasForm {...props} />
    </Dialog>
  );
}

function AliasForm({ alias, taken, onClose }: AliasDialogProps) {
  const { data: collections = [] } = useCollections();
  const [name, setName] = useState(alias?.name ?? '');
  const [chosen, setChosen] = useState(alias?.collection);
  const collection = chosen ?? collections[0]?.id ?? '';
  const error = findNameError(name, alias, taken, collections);
  const isReady =
    name !== '' && error === undefined && collection !== '' && collection !== alias?.collection;
  const save = async () => {
    await session.get().client.aliases.set(name, collection);
    void queryClient.invalidateQueries({ queryKey: ['aliases'] });
    notify(`${name} points to ${collection}.`);
    onClose();
  };
  return (
    <DialogForm
      action={alias === undefined ? 'Create' : 'Point'}
      isReady={isReady}
      onSubmit={save}
      onClose={onClose}
    >
      {alias === undefined && (
        <TextField
          label="Name"
          hint="Requests can use it wherever they name a collection."
          error={error}
          value={name}
          onChange={setName}
        />
      )}
      <SelectField
        label="Collection"
        hint={
          alias === undefined
            ? 'Can be changed at any time.'
            : 'Requests switch at once. Cursors keep the collection with which they began.'
        }
        value={collection}
        options={collections.map(({ id }) => ({ value: id, label: id }))}
        onChange={setChosen}
      />
    </DialogForm>
  );
}

/** Without this check, a name that is in use would be pointed elsewhere without a warning. */
function findNameError(
  name: string,
  alias: AliasRecord | undefined,
  taken: readonly AliasRecord[],
  collections: readonly { readonly id: string }[],
): string | undefined {
  if (alias !== undefined) return undefined;
  const other = taken.find((each) => each.name === name);
  if (other !== undefined) return `${name} is an alias of ${other.collection} already.`;
  return collections.some(({ id }) => id === name) ? `${name} is a collection.` : undefined;
}

interface DeleteAliasProps {
  /** Undefined while the dialog is closed. */
  readonly alias: AliasRecord | undefined;
  readonly onClose: () => void;
}

export function DeleteAlias({ alias, onClose }: DeleteAliasProps) {
  const remove = async () => {
    if (alias === undefined) return;
    await session.get().client.aliases.delete(alias.name);
    void queryClient.invalidateQueries({ queryKey: ['aliases'] });
    notify(`Deleted the alias ${alias.name}.`);
    onClose();
  };
  return (
    <Dialog title="Delete the alias" isOpen={alias !== undefined} onClose={onClose}>
      <DialogForm action="Delete" kind="danger" onSubmit={remove} onClose={onClose}>
        <p>
          Requests that use {alias?.name} will fail. The collection {alias?.collection} and its
          vectors stay.
        </p>
      </DialogForm>
    </Dialog>
  );
}
