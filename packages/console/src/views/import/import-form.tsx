// The form of an import: columns, target and handling of rows.

import type { CollectionRecord, WriteMode } from '@sagitta/client';
import { useCollections } from '../../api/queries.js';
import { Button } from '../../ui/button.js';
import { SelectField } from '../../ui/field.js';
import { formatCount, pluralize } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { ErrorMessage } from '../../ui/states.js';
import { ColumnChoices } from './column-choices.js';
import styles from './import.module.css';
import { type ImportDraft, targetProblem } from './import-draft.js';
import { changeDraft, continueImport, type OpenImport, startImport } from './import-session.js';
import type { SavedImport } from './saved-imports.js';
import { TargetChoices } from './target-choices.js';

const MODES: readonly { readonly value: WriteMode; readonly label: string }[] = [
  { value: 'upsert', label: 'replace vectors with the same id' },
  { value: 'insert', label: 'reject existing ids' },
  { value: 'update', label: 'replace only existing vectors' },
];
const BAD_ROWS = [
  { value: 'stop', label: 'stop the import' },
  { value: 'skip', label: 'skip and list the row' },
];

export function ImportForm(props: OpenImport & { readonly error: unknown }) {
  const { draft, preview, error } = props;
  const { data: collections } = useCollections();
  const saved = collections?.some((target) => isTargetOf(props.saved, target))
    ? props.saved
    : undefined;
  const problem = targetProblem(draft, collections ?? []);
  return (
    <>
      {saved !== undefined && <ContinueImport saved={saved} />}
      <Panel title="Columns">
        <ColumnChoices draft={draft} preview={preview} />
      </Panel>
      <Panel title="Target">
        <TargetChoices draft={draft} collections={collections ?? []} />
        <RowChoices draft={draft} />
        {problem !== undefined && <p className={styles.problem}>{problem}</p>}
        {error !== undefined && <ErrorMessage error={error} />}
        <div>
          <Button
            kind={saved === undefined ? 'primary' : 'plain'}
            disabled={collections === undefined || problem !== undefined}
            onClick={() => void startImport()}
          >
            {saved === undefined ? 'Import' : 'Import from the first row'}
          </Button>
        </div>
      </Panel>
    </>
  );
}

function isTargetOf(saved: SavedImport | undefined, target: CollectionRecord): boolean {
  return target.id === saved?.draft.collectionId && target.created_at === saved.createdAt;
}

function ContinueImport({ saved: { draft, progress } }: { readonly saved: SavedImport }) {
  return (
    <section className={styles.continue}>
      <p>
        An earlier import of this file into <strong>{draft.collectionId}</strong> stopped after{' '}
        {pluralize(progress.endRow, 'row')}
        {progress.badCount > 0 && `, ${formatCount(progress.badCount)} of them invalid`}.
      </p>
      <Button kind="primary" onClick={() => void continueImport()}>
        Continue from row {formatCount(progress.endRow + 1)}
      </Button>
    </section>
  );
}

function RowChoices({ draft }: { readonly draft: ImportDraft }) {
  return (
    <div className={styles.choices}>
      <SelectField
        label="Existing vectors"
        value={draft.mode}
        options={MODES}
        onChange={(mode) => changeDraft({ ...draft, mode })}
      />
      <SelectField
        label="If a row is invalid"
        value={draft.skipsBadRows ? 'skip' : 'stop'}
        options={BAD_ROWS}
        onChange={(chosen) => changeDraft({ ...draft, skipsBadRows: chosen === 'skip' })}
      />
    </div>
  );
}
