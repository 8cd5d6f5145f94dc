// Asks for confirmation, deletes vectors by id, and shows the progress. After a failure, the deletion can be
// continued.

import type { CollectionRecord } from '@sagitta/client';
import { useEffect, useRef, useState } from 'react';
import { deleteByIds } from '../../api/by-ids.js';
import { queryClient } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { Dialog, DialogActions } from '../../ui/dialog.js';
import { formatCount, pluralize } from '../../ui/format.js';
import { notify } from '../../ui/notices.js';
import { ErrorMessage } from '../../ui/states.js';
import styles from './selection.module.css';

interface DeleteDialogProps {
  readonly collection: CollectionRecord;
  /** Must not change while the dialog is open. */
  readonly ids: readonly string[];
  /** Additional information, such as which vectors are kept. */
  readonly note?: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  /** Called with the ids that have been deleted, even after a failure. */
  readonly onDeleted: (ids: readonly string[]) => void;
}

export function DeleteDialog(props: DeleteDialogProps) {
  const title = `Delete ${pluralize(props.ids.length, 'vector')}?`;
  return (
    <Dialog title={title} isOpen={props.isOpen} onClose={props.onClose}>
      <DeleteForm {...props} />
    </Dialog>
  );
}

function DeleteForm(props: DeleteDialogProps) {
  const { collection, ids, note, onClose } = props;
  const { doneCount, isBusy, error, run } = useDeletion(props);
  return (
    <>
      <p>
        They will be deleted from <strong dir="auto">{collection.id}</strong> with their metadata.
        This cannot be undone.
      </p>
      {note !== undefined && <p>{note}</p>}
      {(isBusy || doneCount > 0) && (
        <div className={styles.progress}>
          <progress aria-label="Vectors deleted" value={doneCount} max={ids.length} />
          <span role="status">
            {formatCount(doneCount)} of {formatCount(ids.length)} deleted
          </span>
        </div>
      )}
      {error !== undefined && <ErrorMessage error={error} />}
      <DialogActions>
        <Button onClick={onClose}>{isBusy ? 'Stop' : 'Cancel'}</Button>
        <Button kind="danger" isBusy={isBusy} onClick={run}>
          {error === undefined ? `Delete ${pluralize(ids.length, 'vector')}` : 'Delete the rest'}
        </Button>
      </DialogActions>
    </>
  );
}

function useDeletion({ collection, ids, onClose, onDeleted }: DeleteDialogProps) {
  const { client } = useStore(session);
  const [doneCount, setDoneCount] = useState(0);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const controller = useRef<AbortController>(undefined);
  useEffect(() => () => controller.current?.abort(), []);
  const run = async () => {
    controller.current = new AbortController();
    const { signal } = controller.current;
    setBusy(true);
    setError(undefined);
    let done = doneCount;
    try {
      await deleteByIds(client.collection(collection.id), ids.slice(doneCount), {
        signal,
        onProgress: (count) => {
          done = doneCount + count;
          setDoneCount(done);
        },
      });
      notify(`Deleted ${pluralize(ids.length, 'vector')}.`);
      onClose();
    } catch (cause) {
      if (!signal.aborted) setError(cause);
    } finally {
      setBusy(false);
      onDeleted(ids.slice(0, done));
      void queryClient.invalidateQueries({ queryKey: ['collection', collection.id] });
    }
  };
  return { doneCount, isBusy, error, run };
}
