// Shows the secret of a new or rotated key, once. Only its buttons close the dialog, so that a click outside
// does not lose the secret.

import type { ApiKeyWithSecret } from '@sagitta/client';
import { useState } from 'react';
import { usePrincipal } from '../../api/queries.js';
import { session, signIn } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { CopyButton } from '../../ui/copy-button.js';
import { Dialog, DialogActions } from '../../ui/dialog.js';
import { ErrorMessage } from '../../ui/states.js';
import styles from './keys.module.css';

interface SecretDialogProps {
  /** Undefined while the dialog is closed. */
  readonly record: ApiKeyWithSecret | undefined;
  readonly onClose: () => void;
}

export function SecretDialog({ record, onClose }: SecretDialogProps) {
  return (
    <Dialog title="New key" isOpen={record !== undefined} onClose={onClose} closesByButtonsOnly>
      {record !== undefined && <Secret record={record} onClose={onClose} />}
    </Dialog>
  );
}

interface SecretProps extends SecretDialogProps {
  readonly record: ApiKeyWithSecret;
}

function Secret({ record, onClose }: SecretProps) {
  const { credential } = useStore(session);
  const { data: principal } = usePrincipal();
  const [error, setError] = useState<unknown>();
  const isUsed = credential === record.key;
  const isOwn = principal?.key?.id === record.id;
  const signInWithKey = async () => {
    try {
      await signIn(record.key, { remember: false });
      onClose();
    } catch (cause) {
      setError(cause);
    }
  };
  return (
    <div className={styles.form}>
      <p>
        This is the key of <strong dir="auto">{record.owner}</strong>. Copy it now: it will not be
        shown again.
        {isUsed && ' You are now signed in with it.'}
      </p>
      <div className={styles.secret}>
        <code>{record.key}</code>
        <CopyButton text={record.key} label="Copy the key" />
      </div>
      {error !== undefined && <ErrorMessage error={error} />}
      <DialogActions>
        {!isUsed && (credential === undefined || isOwn) && (
          <Button onClick={() => void signInWithKey()}>Sign in with this key</Button>
        )}
        <Button kind="primary" onClick={onClose}>
          I have copied it
        </Button>
      </DialogActions>
    </div>
  );
}
