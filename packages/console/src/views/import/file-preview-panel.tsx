// The first rows of a file, and the use of each column.

import { DataTable, Truncated } from '../../ui/data-table.js';
import { pluralize } from '../../ui/format.js';
import { Badge, Panel } from '../../ui/panel.js';
import styles from './import.module.css';
import { columnsOf, type ImportPlan } from './import-plan.js';
import type { FilePreview } from './import-reader.js';

interface FilePreviewPanelProps {
  readonly preview: FilePreview;
  readonly plan: ImportPlan;
}

/** Vectors may take up thousands of columns; the first ones suffice. */
const COLUMNS_SHOWN = 60;

export function FilePreviewPanel({ preview, plan }: FilePreviewPanelProps) {
  const { format, rowCount, columns, rows } = preview;
  const shown = columns.slice(0, COLUMNS_SHOWN);
  return (
    <Panel
      title="First rows"
      actions={
        <span className={styles.muted}>
          {format}
          {rowCount !== undefined && `, ${pluralize(rowCount, 'row')}`},{' '}
          {pluralize(columns.length, 'column')}
          {columns.length > shown.length && `, of which ${shown.length} are shown`}
        </span>
      }
    >
      <DataTable
        label="First rows of the file"
        columns={[
          { label: 'Row', kind: 'number', cell: ({ number }) => number + 1 },
          ...shown.map((name, at) => ({
            label: name,
            note: <Use column={name} plan={plan} />,
            cell: ({ cells }: PreviewRow) => <Truncated text={cells[at] ?? ''} />,
          })),
        ]}
        rows={rows.map((cells, number): PreviewRow => ({ cells, number }))}
        keyOf={({ number }) => String(number)}
      />
    </Panel>
  );
}

interface PreviewRow {
  /** From 0. */
  readonly number: number;
  readonly cells: readonly string[];
}

function Use({ column, plan }: { readonly column: string; readonly plan: ImportPlan }) {
  const { idColumn, vector, metadataColumns } = plan;
  if (column === idColumn) return <Badge tone="success">id</Badge>;
  if (columnsOf(vector).includes(column)) {
    return <Badge tone="success">{vector.kind === 'text' ? 'text' : 'vector'}</Badge>;
  }
  return metadataColumns.includes(column) ? <Badge>metadata</Badge> : <Badge>not imported</Badge>;
}
