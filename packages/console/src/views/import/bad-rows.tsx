// Lists the rows that were not imported, and offers the list as a file.

import type { BadRow } from '../../../../../src/readers/reader-options.js';
import { Button } from '../../ui/button.js';
import { DataTable, Truncated } from '../../ui/data-table.js';
import { formatCount } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { saveFile } from '../../ui/save-file.js';
import styles from './import.module.css';

interface BadRowsProps {
  readonly fileName: string;
  readonly badRows: readonly BadRow[];
  /** The number of all bad rows; only the first are kept. */
  readonly count: number;
}

const SHOWN_MAX = 50;

const COLUMNS = [
  { label: 'Row', kind: 'number' as const, cell: ({ row }: BadRow) => formatCount(row + 1) },
  { label: 'Problem', cell: ({ problem }: BadRow) => <Truncated text={problem} /> },
];

export function BadRows({ fileName, badRows, count }: BadRowsProps) {
  const shown = badRows.slice(0, SHOWN_MAX);
  return (
    <Panel
      title="Bad rows"
      actions={<Button onClick={() => download(fileName, badRows)}>Download the list</Button>}
    >
      <DataTable
        label="Rows that were not imported"
        columns={COLUMNS}
        rows={shown}
        keyOf={({ row }) => String(row)}
      />
      {(shown.length < badRows.length || badRows.length < count) && (
        <p className={styles.muted}>
          The first {shown.length} of {formatCount(Math.max(count, badRows.length))}; the list has{' '}
          {formatCount(badRows.length)}.
        </p>
      )}
    </Panel>
  );
}

function download(fileName: string, badRows: readonly BadRow[]) {
  const lines = badRows.map(({ row, problem }) => `${JSON.stringify({ row: row + 1, problem })}\n`);
  saveFile(`${fileName}.bad-rows.ndjson`, 'application/x-ndjson', lines);
}
