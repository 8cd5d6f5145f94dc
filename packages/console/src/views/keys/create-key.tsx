// The dialog that creates an API key. The input is kept until the key exists.

import type { ApiKeyWithSecret } from '@sagitta/client';
import { useState } from 'react';
import { queryClient } from '../../api/queries.js';
import { session, signIn } from '../../api/session.js';
import { createStore, useStore } from '../../api/store.js';
import { Dialog, DialogForm } from '../../ui/dialog.js';
import { TextField } from '../../ui/field.js';
import { EMPTY_DRAFT, firstKey, type KeyDraft, type KeyErrors, parseKey } from './key-draft.js';
import { ScopePicker } from './scope-picker.js';

interface CreateKeyProps {
  /** Whether requests need no credential until this key exists. */
  readonly isFirst: boolean;
  readonly onClose: () => void;
  readonly onCreated: (key: ApiKeyWithSecret) => void;
}

const draftStore = createStore<KeyDraft>(EMPTY_DRAFT);

export function CreateKeyDialog(props: CreateKeyProps & { readonly isOpen: boolean }) {
  return (
    <Dialog title="New API key" isOpen={props.isOpen} onClose={props.onClose}>
      <CreateKeyForm {...props} />
    </Dialog>
  );
}

function CreateKeyForm({ isFirst, onClose, onCreated }: CreateKeyProps) {
  const draft = useStore(draftStore);
  const [errors, setErrors] = useState<KeyErrors>({});
  const change = (part: Partial<KeyDraft>) => draftStore.set({ ...draft, ...part });
  const create = async () => {
    const parsed = parseKey(isFirst ? firstKey(draft.owner) : draft, Date.now());
    setErrors(parsed.kind === 'invalid' ? parsed.errors : {});
    if (parsed.kind === 'invalid') return;
    const key = await session.get().client.keys.create(parsed.input);
    // From now on requests need a credential, so the page would otherwise ask for one immediately.
    if (isFirst) await signIn(key.key, { remember: false }).catch(() => undefined);
    draftStore.set(EMPTY_DRAFT);
    onCreated(key);
    void queryClient.invalidateQueries({ queryKey: ['keys'] });
  };
  return (
    <DialogForm action="Create" onSubmit={create} onClose={onClose}>
      <TextField
        label="Owner"
        hint="Who or what uses the key."
        error={errors.owner}
        dir="auto"
        value={draft.owner}
        onChange={(owner) => change({ owner })}
      />
      {isFirst ? (
        <p>
          This first key is an admin key: it has full access and never expires, so that you can
          create other keys with it. Once it exists, every request needs a credential.
        </p>
      ) : (
        <PermissionFields draft={draft} errors={errors} onChange={change} />
      )}
    </DialogForm>
  );
}

interface DraftFieldsProps {
  readonly draft: KeyDraft;
  readonly errors: KeyErrors;
  readonly onChange: (part: Partial<KeyDraft>) => void;
}

/** What the key permits, and until when. */
function PermissionFields({ draft, errors, onChange }: DraftFieldsProps) {
  return (
    <>
      <ScopePicker
        grants={draft.grants}
        onChange={(grants) => onChange({ grants })}
        error={errors.grants}
      />
      <TextField
        label="Expires after (days)"
        hint="Leave empty for no expiry."
        error={errors.days}
        inputMode="decimal"
        value={draft.days}
        onChange={(days) => onChange({ days })}
      />
      <RestrictionFields draft={draft} errors={errors} onChange={onChange} />
    </>
  );
}

/** Restrictions for a key that is published in a web page. */
function RestrictionFields({ draft, errors, onChange }: DraftFieldsProps) {
  return (
    <>
      <TextField
        label="Web pages (origins)"
        hint="Only these pages may use the key; other programs can still imitate one. Leave empty for no restriction."
        error={errors.origins}
        placeholder="https://app.example.org"
        value={draft.origins}
        onChange={(origins) => onChange({ origins })}
      />
      <TextField
        label="Reads and writes per second"
        hint="Shared by all who use the key. Leave empty for the limits of the server."
        error={errors.rate}
        inputMode="decimal"
        value={draft.rate}
        onChange={(rate) => onChange({ rate })}
      />
      <TextField
        label="Reads and writes in a burst"
        hint="Leave empty to match the rate per second."
        error={errors.burst}
        inputMode="numeric"
        value={draft.burst}
        onChange={(burst) => onChange({ burst })}
      />
    </>
  );
}
