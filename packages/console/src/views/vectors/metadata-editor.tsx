// Edits the metadata of a vector as JSON. It is saved only if the vector has not changed since it was read.
// Unsaved input is kept while the editor is closed.

import type { CollectionRecord, JsonObject, StoredVector } from '@sagitta/client';
import { useState } from 'react';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { session } from '../../api/session.js';
import { Button } from '../../ui/button.js';
import { TextAreaField } from '../../ui/field.js';
import { notify } from '../../ui/notices.js';
import { ErrorMessage } from '../../ui/states.js';
import { parseObject } from '../filter/filter-values.js';
import { mergePatchBetween } from './merge-patch.js';
import styles from './vector-details.module.css';

interface MetadataEditorProps {
  readonly collection: CollectionRecord;
  /** Must include its sequence. */
  readonly vector: StoredVector<JsonObject, Float32Array>;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

/** Unsaved texts by collection and vector. */
const drafts = new Map<string, string>();

export function MetadataEditor({ collection, vector, onClose, onSaved }: MetadataEditorProps) {
  const draftKey = JSON.stringify([collection.id, vector.id]);
  const metadata = vector.metadata ?? {};
  const [text, setText] = useState(
    () => drafts.get(draftKey) ?? stringifyExactJson(metadata, undefined, 2),
  );
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const { object, problem } = parseObject(text);
  const change = object && mergePatchBetween(metadata, object);
  const nullPath = change?.nullPaths[0];
  const blocker =
    problem ??
    (nullPath === undefined
      ? undefined
      : `${nullPath} cannot be set to null, because null removes a member. Leave the member out to remove it.`);

  const save = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await session
        .get()
        .client.collection(collection.id)
        .patch(vector.id, { metadata: change!.patch, if_sequence: vector.sequence! });
      drafts.delete(draftKey);
      notify('Saved the metadata.');
      onSaved();
    } catch (cause) {
      setError(cause);
    } finally {
      setBusy(false);
    }
  };
  const discard = () => {
    drafts.delete(draftKey);
    onClose();
  };
  return (
    <form
      className={styles.editor}
      onSubmit={(event) => {
        event.preventDefault();
        if (blocker === undefined) void save();
      }}
    >
      <TextAreaField
        label="Metadata as JSON"
        error={blocker}
        rows={Math.min(24, text.split('\n').length + 1)}
        value={text}
        onChange={(typed) => {
          drafts.set(draftKey, typed);
          setText(typed);
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.currentTarget.form?.requestSubmit();
        }}
      />
      {error !== undefined && <ErrorMessage error={error} />}
      <div className={styles.editorActions}>
        <Button onClick={discard}>Discard</Button>
        <Button
          type="submit"
          kind="primary"
          isBusy={isBusy}
          disabled={blocker !== undefined || Object.keys(change?.patch ?? {}).length === 0}
        >
          Save
        </Button>
      </div>
    </form>
  );
}
