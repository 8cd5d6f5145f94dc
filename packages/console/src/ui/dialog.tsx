// A modal dialog, a form for dialogs, and a confirmation that requires a name to be typed before a deletion.

import { DialogDismiss, DialogHeading, Dialog as ModalDialog } from '@ariakit/react';
import { X } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Button } from './button.js';
import styles from './dialog.module.css';
import { TextField } from './field.js';
import { ErrorMessage } from './states.js';

interface DialogProps {
  readonly title: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  /** Whether Escape and clicks outside are ignored, because the contents would be lost. */
  readonly closesByButtonsOnly?: boolean;
  readonly children: ReactNode;
}

export function Dialog({
  title,
  isOpen,
  onClose,
  closesByButtonsOnly = false,
  children,
}: DialogProps) {
  return (
    <ModalDialog
      open={isOpen}
      onClose={onClose}
      unmountOnHide
      hideOnEscape={!closesByButtonsOnly}
      hideOnInteractOutside={!closesByButtonsOnly}
      className={styles.dialog}
      backdrop={<div className={styles.backdrop} />}
    >
      <header className={styles.header}>
        <DialogHeading className={styles.heading}>{title}</DialogHeading>
        <DialogDismiss className={styles.dismiss} aria-label="Close">
          <X size={18} aria-hidden />
        </DialogDismiss>
      </header>
      {children}
    </ModalDialog>
  );
}

export function DialogActions({ children }: { readonly children: ReactNode }) {
  return <footer className={styles.actions}>{children}</footer>;
}

interface DialogFormProps {
  /** The label of the submit button. */
  readonly action: string;
  /** The label of the button that closes the dialog. */
  readonly cancel?: string;
  readonly kind?: 'primary' | 'danger';
  /** Whether the form can be submitted. */
  readonly isReady?: boolean;
  /** Must close the dialog itself. If it throws, the error is shown. */
  readonly onSubmit: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function DialogForm(props: DialogFormProps) {
  const { action, cancel = 'Cancel', kind = 'primary', isReady = true } = props;
  const { onSubmit, onClose, children } = props;
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit();
    } catch (cause) {
      setError(cause);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady && !isBusy) void submit();
      }}
    >
      {children}
      {error !== undefined && <ErrorMessage error={error} />}
      <DialogActions>
        <Button onClick={onClose}>{cancel}</Button>
        <Button type="submit" kind={kind} disabled={!isReady} isBusy={isBusy}>
          {action}
        </Button>
      </DialogActions>
    </form>
  );
}

interface ConfirmByNameProps {
  readonly title: string;
  /** Explains what will happen. */
  readonly children: ReactNode;
  /** The text to type. */
  readonly name: string;
  readonly action: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  /** The dialog closes when this resolves, and shows the error when it rejects. */
  readonly onConfirm: () => Promise<unknown>;
}

export function ConfirmByName(props: ConfirmByNameProps) {
  const { title, isOpen, onClose } = props;
  return (
    <Dialog title={title} isOpen={isOpen} onClose={onClose}>
      <ConfirmForm {...props} />
    </Dialog>
  );
}

function ConfirmForm({ children, name, action, onClose, onConfirm }: ConfirmByNameProps) {
  const [typed, setTyped] = useState('');
  const confirm = async () => {
    await onConfirm();
    onClose();
  };
  return (
    <DialogForm
      action={action}
      kind="danger"
      isReady={typed === name}
      onSubmit={confirm}
      onClose={onClose}
    >
      <div>{children}</div>
      <TextField label={`Type ${name} to confirm`} value={typed} onChange={setTyped} />
    </DialogForm>
  );
}
