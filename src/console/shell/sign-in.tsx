// The dialog that asks for an API key or a token, above whatever view was open.

import { useState } from 'react';
import { describeError } from '../api/describe-error.js';
import { signIn, signInReason } from '../api/session.js';
import { useStore } from '../api/store.js';
import { Button } from '../ui/button.js';
import { Dialog, DialogActions } from '../ui/dialog.js';
import { Checkbox, TextField } from '../ui/field.js';
import styles from './sign-in.module.css';

const TEXTS = {
  missing: 'This server wants to know who asks.',
  refused: 'The server no longer accepts your credential: it was revoked, or it has expired.',
};

export function SignIn() {
  const reason = useStore(signInReason);
  return (
    <Dialog
      title="Sign in"
      isOpen={reason !== undefined}
      onClose={() => signInReason.set(undefined)}
    >
      {reason !== undefined && <SignInForm text={TEXTS[reason]} />}
    </Dialog>
  );
}

function SignInForm({ text }: { readonly text: string }) {
  const [credential, setCredential] = useState('');
  const [remember, setRemember] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await signIn(credential.trim(), { remember });
    } catch (cause) {
      setError(describeError(cause).detail);
      setBusy(false);
    }
  };
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <p>{text}</p>
      <TextField
        label="API key or token"
        error={error}
        type="password"
        autoComplete="off"
        value={credential}
        onChange={setCredential}
      />
      <Checkbox
        label="Remember it until this tab is closed"
        isChecked={remember}
        onChange={setRemember}
      />
      <DialogActions>
        <Button onClick={() => signInReason.set(undefined)}>Not now</Button>
        <Button type="submit" kind="primary" disabled={credential === ''} isBusy={isBusy}>
          Sign in
        </Button>
      </DialogActions>
    </form>
  );
}
