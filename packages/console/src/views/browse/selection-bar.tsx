// The number of selected vectors, and the actions on them.

import type { CollectionRecord } from '@sagitta/client';
import { Download, Search, Tag, Trash2, X } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { Button } from '../../ui/button.js';
import buttonStyles from '../../ui/button.module.css';
import { classNames } from '../../ui/class-names.js';
import { formatCount } from '../../ui/format.js';
import { EXAMPLES_MAX } from '../query/query-draft.js';
import { queryPath } from '../routes.js';
import { DeleteDialog } from '../selection/delete-dialog.js';
import { TagDialog } from '../selection/tag-dialog.js';
import styles from './browse.module.css';

interface SelectionBarProps {
  readonly collection: CollectionRecord;
  /** At least one. */
  readonly ids: readonly string[];
  readonly onChange: (ids: ReadonlySet<string>) => void;
  readonly onExport: () => void;
}

export function SelectionBar({ collection, ids, onChange, onExport }: SelectionBarProps) {
  const [dialog, setDialog] = useState<'tag' | 'delete'>();
  const close = () => setDialog(undefined);
  return (
    <div className={styles.selection} role="toolbar" aria-label="Selected vectors">
      <strong role="status">{formatCount(ids.length)} selected</strong>
      {ids.length <= EXAMPLES_MAX && (
        <Link
          href={queryPath(collection, { recommend: { positive: ids } })}
          className={classNames(buttonStyles.button, buttonStyles.plain, styles.link)}
        >
          <Search size={15} aria-hidden />
          Find similar
        </Link>
      )}
      <Button icon={Tag} onClick={() => setDialog('tag')}>
        Tag
      </Button>
      <Button icon={Download} onClick={onExport}>
        Export
      </Button>
      <Button icon={Trash2} kind="danger" onClick={() => setDialog('delete')}>
        Delete
      </Button>
      <Button icon={X} kind="quiet" onClick={() => onChange(new Set())}>
        Clear
      </Button>
      <TagDialog collection={collection} ids={ids} isOpen={dialog === 'tag'} onClose={close} />
      <DeleteDialog
        collection={collection}
        ids={ids}
        isOpen={dialog === 'delete'}
        onClose={close}
        onDeleted={(deleted) => {
          const gone = new Set(deleted);
          onChange(new Set(ids.filter((id) => !gone.has(id))));
        }}
      />
    </div>
  );
}
