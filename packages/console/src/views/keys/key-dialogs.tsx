// The dialogs that rotate and revoke an API key. The old secret of a rotated key may stay valid for a while.

import type { ApiKeyRecord, ApiKeyWithSecret } from '@sagitta/client';
import { useState } from 'react';
import { queryClient } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { Dialog, DialogForm } from '../../ui/dialog.js';
import { SelectField } from '../../ui/field.js';
import { notify } from '../../ui/notices.js';

interface KeyDialogProps {
  /** Undefined while the dialog is closed. */
  readonly record: ApiKeyRecord | undefined;
  readonly onClose: () => void;
}

type WithRecord<Props> = Props & { readonly record: ApiKeyRecord };

interface RotateDialogProps extends KeyDialogProps {
  readonly onRotated: (key: ApiKeyWithSecret) => void;
}

const GRACE_OPTIONS = [
  { value: '0', label: 'expires immediately' },
  { value: '3600', label: 'stays valid for an hour' },
  { value: '86400', label: 'stays valid for a day' },
  { value: '604800', label: 'stays valid for a week' },
];

export function RotateDialog({ record, onClose, onRotated }: RotateDialogProps) {
  return (
    <Dialog title="Rotate the key" isOpen={record !== undefined} onClose={onClose}>
      {record !== undefined && (
        <RotateForm record={record} onClose={onClose} onRotated={onRotated} />
      )}
    </Dialog>
  );
}

function RotateForm({ record, onClose, onRotated }: WithRecord<RotateDialogProps>) {
  const [grace, setGrace] = useState('3600');
  const rotate = async () => {
    const request = { grace_seconds: Number(grace) };
    const key = await session.get().client.keys.rotate(record.id, request);
    onRotated(key);
    void queryClient.invalidateQueries({ queryKey: ['keys'] });
  };
  return (
    <DialogForm action="Rotate" onSubmit={rotate} onClose={onClose}>
      <p>
        The key of <strong dir="auto">{record.owner}</strong> gets a new secret and keeps its
        scopes.
      </p>
      <SelectField
        label="The old secret"
        value={grace}
        options={GRACE_OPTIONS}
        onChange={setGrace}
      />
    </DialogForm>
  );
}

export function RevokeDialog({ record, onClose }: KeyDialogProps) {
  return (
    <Dialog title="Revoke the key" isOpen={record !== undefined} onClose={onClose}>
      {record !== undefined && <RevokeForm record={record} onClose={onClose} />}
    </Dialog>
  );
}

function RevokeForm({ record, onClose }: WithRecord<KeyDialogProps>) {
  const revoke = async () => {
    await session.get().client.keys.revoke(record.id);
    notify(`Revoked the key of ${record.owner}.`);
    onClose();
    void queryClient.invalidateQueries({ queryKey: ['keys'] });
  };
  return (
    <DialogForm action="Revoke" kind="danger" onSubmit={revoke} onClose={onClose}>
      <p>
        Requests with the key <code>{record.id}</code> of <strong dir="auto">{record.owner}</strong>{' '}
        will be refused. This cannot be undone.
      </p>
    </DialogForm>
  );
}
