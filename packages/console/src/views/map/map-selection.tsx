// The selected points as a table, and the actions on them.

import type { CollectionRecord } from '@sagitta/client';
import { Download, Search, Table2, Tag, Trash2, X } from 'lucide-react';
import { useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import { useFoundPaths } from '../../api/queries.js';
import { Button, IconButton } from '../../ui/button.js';
import { formatCount } from '../../ui/format.js';
import { ErrorMessage } from '../../ui/states.js';
import { browseState, defaultColumns, PICTURE_KEY, VALUES_KEY } from '../browse/browse-state.js';
import { ExportDialog } from '../browse/export-dialog.js';
import { filterOfIds } from '../browse/export-rows.js';
import { collectionPath } from '../routes.js';
import { DeleteDialog } from '../selection/delete-dialog.js';
import { TagDialog } from '../selection/tag-dialog.js';
import { ID_COLUMN, metadataColumn, pictureColumn } from '../vectors/vector-columns.js';
import { VectorTable } from '../vectors/vector-table.js';
import styles from './map.module.css';
import { useFindSimilar } from './use-find-similar.js';
import { useSelectedRows } from './use-selected-rows.js';

interface MapSelectionProps {
  readonly collection: CollectionRecord;
  readonly using: string;
  /** At least one. */
  readonly ids: readonly string[];
  readonly colourPath: string;
  readonly onClear: () => void;
  /** Called when the metadata of the vectors has changed. */
  readonly onTagged: () => void;
  readonly onDeleted: (ids: readonly string[]) => void;
}

type DialogName = 'tag' | 'delete' | 'export';

export function MapSelection(props: MapSelectionProps) {
  const { collection, using, ids, onClear } = props;
  const [dialog, setDialog] = useState<DialogName>();
  const similar = useFindSimilar(collection, using);
  const showInBrowse = useShowInBrowse(collection);
  return (
    <section className={styles.selection} aria-label="Selection">
      <header className={styles.selectionHeader}>
        <h2 aria-live="polite">{formatCount(ids.length)} selected</h2>
        <IconButton icon={X} label="Clear the selection" onClick={onClear} />
      </header>
      <div className={styles.actions}>
        <Button icon={Search} isBusy={similar.isBusy} onClick={() => similar.find(ids)}>
          Find more like these
        </Button>
        <Button icon={Table2} onClick={() => showInBrowse(ids)}>
          Browse
        </Button>
        <Button icon={Tag} onClick={() => setDialog('tag')}>
          Tag
        </Button>
        <Button icon={Download} onClick={() => setDialog('export')}>
          Export
        </Button>
        <Button icon={Trash2} kind="danger" onClick={() => setDialog('delete')}>
          Delete
        </Button>
      </div>
      {similar.error !== undefined && <ErrorMessage error={similar.error} />}
      <SelectionTable {...props} />
      <SelectionDialogs {...props} dialog={dialog} onClose={() => setDialog(undefined)} />
    </section>
  );
}

interface SelectionDialogsProps extends MapSelectionProps {
  readonly dialog: DialogName | undefined;
  readonly onClose: () => void;
}

function SelectionDialogs({ dialog, onClose, ...props }: SelectionDialogsProps) {
  const { collection, ids, onTagged, onDeleted } = props;
  return (
    <>
      <TagDialog
        collection={collection}
        ids={ids}
        isOpen={dialog === 'tag'}
        onClose={onClose}
        onTagged={onTagged}
      />
      <DeleteDialog
        collection={collection}
        ids={ids}
        isOpen={dialog === 'delete'}
        onClose={onClose}
        onDeleted={onDeleted}
      />
      <ExportDialog
        collection={collection}
        filter={undefined}
        paths={useTablePaths(props)}
        rowCount={collection.vector_count}
        selectedIds={ids}
        isOpen={dialog === 'export'}
        onClose={onClose}
      />
    </>
  );
}

/** The metadata paths of the table: the path that colours the points, then the columns of the browse view. */
function useTablePaths({ collection, colourPath }: MapSelectionProps): readonly string[] {
  const { data: found } = useFoundPaths(collection.id);
  return useMemo(() => {
    const usual = defaultColumns(collection, found ?? []).filter(
      (key) => key !== PICTURE_KEY && key !== VALUES_KEY,
    );
    return [...new Set(colourPath === '' ? usual : [colourPath, ...usual])];
  }, [collection, found, colourPath]);
}

function SelectionTable(props: MapSelectionProps) {
  const { collection, ids } = props;
  const paths = useTablePaths(props);
  const { data: found } = useFoundPaths(collection.id);
  const { hasPictures, rowAt, onRangeChange } = useSelectedRows(collection, ids);
  const columns = useMemo(
    () => [
      ...(hasPictures ? [pictureColumn(collection)] : []),
      ID_COLUMN,
      ...paths.map((path) =>
        metadataColumn(
          path,
          found?.find((one) => one.path === path),
        ),
      ),
    ],
    [collection, hasPictures, paths, found],
  );
  return (
    <VectorTable
      label="Selected vectors"
      columns={columns.map((column) => ({ ...column, isSortable: false }))}
      rowCount={ids.length}
      rowAt={rowAt}
      onRangeChange={onRangeChange}
      className={styles.table}
    />
  );
}

/** Opens the browse view with the vectors selected and, if the filter fits into a URL, filtered to them. */
function useShowInBrowse({ id }: CollectionRecord): (ids: readonly string[]) => void {
  const [, navigate] = useLocation();
  return (ids) => {
    const store = browseState(id);
    const filter = filterOfIds(ids);
    store.set({
      ...store.get(),
      selection: new Set(ids),
      ...(filter !== undefined && { filter, isFilterShown: false }),
    });
    navigate(collectionPath(id, 'browse'));
  };
}
