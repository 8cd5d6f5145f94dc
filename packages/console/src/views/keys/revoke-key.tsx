// Revokes an API key after confirmation.

import type { ApiKeyRecord } from '@sagitta/client';
import { queryClient } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { Dialog, DialogForm } from '../../ui/dialog.js';
import { notify } from '../../ui/notices.js';

interface RevokeDialogProps {
  /** Undefined while the dialog is closed. */
  readonly record: ApiKeyRecord | undefined;
  readonly onClose: () => void;
}

export function RevokeDialog({ record, onClose }: RevokeDialogProps) {
  return (
    <Dialog title="Revoke the key" isOpen={record !== undefined} onClose={onClose}>
      {record !== undefined && <RevokeForm record={record} onClose={onClose} />}
    </Dialog>
  );
}

interface RevokeFormProps extends RevokeDialogProps {
  readonly record: ApiKeyRecord;
}

function RevokeForm({ record, onClose }: RevokeFormProps) {
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
