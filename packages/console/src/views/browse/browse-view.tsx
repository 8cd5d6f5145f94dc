// Browses a collection: a table of all vectors, or of those that pass a filter, beside the details of one
// vector.

import { SagittaClientError } from '@sagitta/client';
import { Download, Filter, RefreshCw } from 'lucide-react';
import { useMemo, useState } from 'react';
import { useFoundPaths } from '../../api/queries.js';
import { useMembers } from '../../api/store.js';
import { Button, IconButton } from '../../ui/button.js';
import { formatCount, pluralize } from '../../ui/format.js';
import { notify } from '../../ui/notices.js';
import { Skeleton } from '../../ui/skeleton.js';
import { Empty, ErrorMessage } from '../../ui/states.js';
import { useDebounced } from '../../ui/use-debounced.js';
import { NARROW, useMedia } from '../../ui/use-media.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { FilterEditor } from '../filter/filter-editor.js';
import { SELECTED_MAX, withAll } from '../vectors/table-selection.js';
import {
  ID_COLUMN,
  metadataColumn,
  pictureColumn,
  VALUES_COLUMN,
} from '../vectors/vector-columns.js';
import { VectorDetails } from '../vectors/vector-details.js';
import { VectorTable } from '../vectors/vector-table.js';
import styles from './browse.module.css';
import {
  type BrowseState,
  browseState,
  defaultColumns,
  needsValues,
  PICTURE_KEY,
  rememberColumns,
  VALUES_KEY,
} from './browse-state.js';
import { ColumnPicker } from './column-picker.js';
import { ExportDialog } from './export-dialog.js';
import { SelectionBar } from './selection-bar.js';
import { SortSelect } from './sort-select.js';
import { type RowList, useRows } from './use-rows.js';

/** The table waits for a pause in typing. */
const TYPING_MS = 250;

export default function BrowseView({ collection }: CollectionViewProps) {
  const [state, change] = useMembers(browseState(collection.id));
  const [isExporting, setExporting] = useState(false);
  const { data: paths } = useFoundPaths(collection.id);
  const isCards = useMedia(NARROW);
  const columns = state.columns ?? defaultColumns(collection, paths ?? [], isCards);
  const hasValues = needsValues(collection, columns);
  const filter = useDebounced(state.filter, TYPING_MS);
  const rows = useRows(collection, { filter, sort: state.sort, hasValues });
  const ids = useMemo(() => [...state.selection], [state.selection]);
  const metadataPaths = columns.filter((key) => key !== VALUES_KEY && key !== PICTURE_KEY);
  const shared = { collection, state, change, rows, columns, isCards };
  return (
    <div className={styles.view}>
      <h1 className="visually-hidden">Vectors of {collection.id}</h1>
      <Toolbar {...shared} onExport={() => setExporting(true)} />
      {state.isFilterShown && (
        <div className={styles.filter}>
          <FilterEditor
            collection={collection}
            value={state.filter}
            onChange={(filter) => change({ filter })}
            draftKey="browse"
          />
        </div>
      )}
      {rows.error !== undefined && !(state.isFilterShown && isAboutFilter(rows.error)) && (
        <div className={styles.place}>
          <ErrorMessage error={rows.error} onRetry={rows.refresh} />
        </div>
      )}
      <div className={styles.main}>
        <Table {...shared} />
        {state.openId !== undefined && (
          <aside className={styles.details} aria-label="Details">
            <VectorDetails
              key={state.openId}
              collection={collection}
              id={state.openId}
              onClose={() => change({ openId: undefined })}
            />
          </aside>
        )}
      </div>
      {/* Below the rows, which the first selection would otherwise move. */}
      {ids.length > 0 && (
        <SelectionBar
          collection={collection}
          ids={ids}
          onChange={(selection) => change({ selection })}
          onExport={() => setExporting(true)}
        />
      )}
      <ExportDialog
        collection={collection}
        filter={state.filter}
        paths={metadataPaths}
        rowCount={rows.rowCount ?? 0}
        selectedIds={ids}
        isOpen={isExporting}
        onClose={() => setExporting(false)}
      />
    </div>
  );
}

/** Errors of the filter are shown in the filter editor, where they occur. */
function isAboutFilter(error: unknown): boolean {
  return error instanceof SagittaClientError && error.code === 'invalid_filter';
}

interface SharedProps extends CollectionViewProps {
  readonly state: BrowseState;
  readonly change: (part: Partial<BrowseState>) => void;
  readonly rows: RowList;
  /** The keys of the columns after the id. */
  readonly columns: readonly string[];
  /** Whether the page is so narrow that rows are cards. */
  readonly isCards: boolean;
}

interface ToolbarProps extends SharedProps {
  readonly onExport: () => void;
}

function Toolbar(props: ToolbarProps) {
  const { collection, state, change, rows, columns, isCards, onExport } = props;
  const { data: paths = [] } = useFoundPaths(collection.id);
  const { filter, isFilterShown, widths } = state;
  return (
    <div className={styles.toolbar}>
      <Button
        icon={Filter}
        aria-expanded={isFilterShown}
        onClick={() => change({ isFilterShown: !isFilterShown })}
      >
        Filter{filter !== undefined && ' (on)'}
      </Button>
      <ColumnPicker
        paths={paths}
        columns={columns}
        onChange={(next) => {
          change({ columns: next });
          rememberColumns(collection.id, { columns: next, widths });
        }}
      />
      <Button icon={Download} onClick={onExport}>
        Export
      </Button>
      {isCards && (
        <SortSelect columns={columns} sort={state.sort} onChange={(sort) => change({ sort })} />
      )}
      <p className={styles.count} role="status" aria-busy={rows.isOutdated}>
        {rows.rowCount !== undefined && pluralize(rows.rowCount, 'vector')}
        {rows.rowCount !== undefined &&
          filter !== undefined &&
          ` of ${formatCount(collection.vector_count)}`}
      </p>
      <IconButton icon={RefreshCw} label="Refresh" onClick={rows.refresh} />
    </div>
  );
}

function Table({ collection, state, change, rows, columns, isCards }: SharedProps) {
  const { data: paths } = useFoundPaths(collection.id);
  const tableColumns = useMemo(() => {
    const byPath = new Map((paths ?? []).map((found) => [found.path, found]));
    return [
      ID_COLUMN,
      ...columns.map((key) => {
        if (key === PICTURE_KEY) return pictureColumn(collection);
        if (key === VALUES_KEY) return VALUES_COLUMN;
        return metadataColumn(key, byPath.get(key), rows.firstRows);
      }),
    ];
  }, [collection, columns, paths, rows.firstRows]);
  const selectRange = async (first: number, last: number) => {
    const ids = await rows.readIds(first, Math.min(last, first + SELECTED_MAX));
    change({ selection: withAll(state.selection, ids) });
    if (last - first > SELECTED_MAX) {
      notify(`Selected ${formatCount(SELECTED_MAX)} vectors, the maximum per action.`);
    }
  };
  if (rows.rowCount === undefined) {
    return rows.error === undefined && <Skeleton shape="rows" label="Reading vectors" />;
  }
  if (rows.rowCount === 0) {
    return (
      <div className={styles.place}>
        <NoRows isFiltered={state.filter !== undefined} />
      </div>
    );
  }
  return (
    <VectorTable
      label={`Vectors of ${collection.id}`}
      className={styles.table}
      isCards={isCards}
      columns={tableColumns}
      rowCount={rows.rowCount}
      rowAt={rows.rowAt}
      onRangeChange={rows.onRangeChange}
      selection={state.selection}
      onSelectionChange={(selection) => change({ selection })}
      onSelectRange={(first, last) => void selectRange(first, last)}
      onOpen={({ id }) => change({ openId: id })}
      openId={state.openId}
      sort={state.sort}
      onSortChange={(sort) => change({ sort })}
      widths={state.widths}
      onWidthsChange={(widths) => {
        change({ widths });
        rememberColumns(collection.id, { columns: state.columns, widths });
      }}
    />
  );
}

function NoRows({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No vectors match the filter">Change a condition, or clear the filter.</Empty>
  ) : (
    <Empty title="No vectors yet">
      <a href="#/import">Import a file</a>
    </Empty>
  );
}
