// The dialog that asks for an API key or a token, on top of the current view.

import { useState } from 'react';
import { describeError } from '../api/describe-error.js';
import { signIn, signInReason } from '../api/session.js';
import { useStore } from '../api/store.js';
import { Dialog, DialogForm } from '../ui/dialog.js';
import { Checkbox, TextField } from '../ui/field.js';

const TEXTS = {
  missing: 'This server requires a credential.',
  refused: 'The server no longer accepts your credential. It has expired or was revoked.',
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
  const [error, setError] = useState<string>();
  const submit = async () => {
    setError(undefined);
    try {
      await signIn(credential.trim(), { remember });
    } catch (cause) {
      setError(describeError(cause).detail);
    }
  };
  return (
    <DialogForm
      action="Sign in"
      cancel="Not now"
      isReady={credential !== ''}
      onSubmit={submit}
      onClose={() => signInReason.set(undefined)}
    >
      <p>{text}</p>
      <TextField
        label="API key or token"
        error={error}
        type="password"
        value={credential}
        onChange={setCredential}
      />
      <Checkbox
        label="Stay signed in until this tab is closed"
        isChecked={remember}
        onChange={setRemember}
      />
    </DialogForm>
  );
}
