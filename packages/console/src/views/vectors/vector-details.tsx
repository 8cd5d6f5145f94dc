// Everything about one vector: preview, metadata, values and sequence, with actions to edit the metadata and to delete
// the vector.

import type { CollectionRecord, JsonObject, StoredVector } from '@sagitta/client';
import { Pencil, Search, Trash2, X } from 'lucide-react';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import { queryClient, useApi } from '../../api/queries.js';
import { Button, IconButton } from '../../ui/button.js';
import { CopyButton } from '../../ui/copy-button.js';
import { formatCount, formatTime } from '../../ui/format.js';
import { ErrorMessage, Loading } from '../../ui/states.js';
import { queryPath } from '../routes.js';
import { DeleteDialog } from '../selection/delete-dialog.js';
import { MetadataEditor } from './metadata-editor.js';
import { MetadataTree } from './metadata-tree.js';
import { ValuesPanel } from './values-panel.js';
import styles from './vector-details.module.css';
import { VectorPreview } from './vector-preview.js';

interface VectorDetailsProps {
  readonly collection: CollectionRecord;
  readonly id: string;
  readonly onClose?: () => void;
  /** Called after the metadata has changed or the vector has been deleted. */
  readonly onChange?: () => void;
}

export function VectorDetails({ collection, id, onClose, onChange }: VectorDetailsProps) {
  const { data, error, refetch } = useApi(
    ['collection', collection.id, 'vector', id],
    (client, signal) =>
      client
        .collection(collection.id)
        .get(id, { include_values: 'float32', include_sequence: true }, { signal }),
  );
  return (
    <section className={styles.details} aria-label={`Vector ${id}`}>
      <header className={styles.header}>
        <h2 className={styles.id} title={id}>
          <bdi>{id}</bdi>
        </h2>
        <CopyButton text={id} label="Copy the id" />
        {onClose !== undefined && <IconButton icon={X} label="Close" onClick={onClose} />}
      </header>
      {data === undefined && error === null && <Loading />}
      {error !== null && <ErrorMessage error={error} onRetry={refetch} />}
      {data !== undefined && (
        <Contents
          key={id}
          collection={collection}
          vector={data}
          onChange={() => {
            void queryClient.invalidateQueries({ queryKey: ['collection', collection.id] });
            onChange?.();
          }}
          onDeleted={onClose}
        />
      )}
    </section>
  );
}

interface ContentsProps {
  readonly collection: CollectionRecord;
  readonly vector: StoredVector<JsonObject, Float32Array>;
  readonly onChange: () => void;
  readonly onDeleted: (() => void) | undefined;
}

function Contents({ collection, vector, onChange, onDeleted }: ContentsProps) {
  const [isEditing, setEditing] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const ids = useMemo(() => [vector.id], [vector.id]);
  return (
    <>
      <div className={styles.actions}>
        <Link href={queryPath(collection, { id: vector.id })} className={styles.link}>
          <Search size={15} aria-hidden />
          Find similar
        </Link>
        <Button icon={Pencil} aria-expanded={isEditing} onClick={() => setEditing(!isEditing)}>
          Edit metadata
        </Button>
        <IconButton
          icon={Trash2}
          kind="plain"
          label="Delete the vector"
          onClick={() => setDeleting(true)}
        />
      </div>
      <VectorPreview collection={collection} vector={vector} hasId={false} />
      <h3>Metadata</h3>
      {isEditing ? (
        <MetadataEditor
          // Reopens the editor on a new state of the vector; unsaved input is kept as a draft.
          key={vector.sequence}
          collection={collection}
          vector={vector}
          onClose={() => setEditing(false)}
          onSaved={() => {
            setEditing(false);
            onChange();
          }}
        />
      ) : (
        <MetadataTree metadata={vector.metadata ?? {}} />
      )}
      <ValuesPanel vector={vector} />
      <p className={styles.note}>
        Written at sequence {formatCount(vector.sequence ?? 0)}
        {vector.expires_at !== undefined && `, expires ${formatTime(vector.expires_at)}`}
      </p>
      <DeleteDialog
        collection={collection}
        ids={ids}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onDeleted={(deleted) => {
          if (deleted.length === 0) return;
          onDeleted?.();
          onChange();
        }}
      />
    </>
  );
}
