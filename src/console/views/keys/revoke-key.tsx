// Revokes an API key after it was confirmed.

import { useState } from 'react';
import type { ApiKeyRecord } from '../../../client/client.js';
import { queryClient } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { Button } from '../../ui/button.js';
import { Dialog, DialogActions } from '../../ui/dialog.js';
import { notify } from '../../ui/notices.js';
import { Problem } from '../../ui/states.js';
import styles from './keys.module.css';

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
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const revoke = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await session.get().client.keys.revoke(record.id);
      notify(`Revoked the key of ${record.owner}.`);
      onClose();
      void queryClient.invalidateQueries({ queryKey: ['keys'] });
    } catch (cause) {
      setError(cause);
      setBusy(false);
    }
  };
  return (
    <div className={styles.form}>
      <p>
        Requests with the key <code>{record.id}</code> of <strong dir="auto">{record.owner}</strong>{' '}
        are refused from now on. This cannot be undone.
      </p>
      {error !== undefined && <Problem error={error} />}
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="danger" isBusy={isBusy} onClick={() => void revoke()}>
          Revoke
        </Button>
      </DialogActions>
    </div>
  );
}
