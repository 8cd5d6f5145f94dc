// The progress of an import that is running, stopped or done.

import { Link } from 'wouter';
import { describeError } from '../../api/describe-error.js';
import { Button } from '../../ui/button.js';
import { formatCount, formatDuration, pluralize } from '../../ui/format.js';
import { Panel, Stat, StatList } from '../../ui/panel.js';
import { ErrorMessage } from '../../ui/states.js';
import { collectionPath } from '../routes.js';
import { BadRows } from './bad-rows.js';
import styles from './import.module.css';
import { cancelImport, continueImport, type ImportState } from './import-session.js';
import { BadRowError } from './run-import.js';

type ProgressState = Extract<ImportState, { readonly progress: unknown }>;

const TITLES = { running: 'Importing', stopped: 'Stopped', done: 'Imported' };

export function ProgressPanel({ state }: { readonly state: ProgressState }) {
  const { kind, progress, draft } = state;
  const { done, rowsPerSecond, secondsLeft } = progress;
  const share = kind === 'done' ? 1 : progress.share;
  return (
    <>
      <Panel title={TITLES[kind]} actions={<Actions state={state} />}>
        {/* Reading is ahead of the row at which an import stopped. */}
        {kind !== 'stopped' && (
          <progress
            className={styles.progress}
            aria-label={`Import into ${draft.collectionId}`}
            max={1}
            value={share}
          />
        )}
        <StatList>
          {kind !== 'stopped' && (
            <Stat label="Read" value={`${Math.floor(share * 100)} %`} note="of the file" />
          )}
          <Stat
            label="Written"
            value={formatCount(done.writtenCount)}
            note={
              <>
                into{' '}
                <Link href={collectionPath(draft.collectionId, 'browse')}>
                  {draft.collectionId}
                </Link>
              </>
            }
          />
          <Stat label="Bad rows" value={formatCount(done.badCount)} />
          <Stat
            label="Rate"
            value={
              rowsPerSecond === undefined ? '–' : `${formatCount(Math.round(rowsPerSecond))}/s`
            }
            note="rows"
          />
          {kind === 'running' && (
            <Stat
              label="Time left"
              value={secondsLeft === undefined ? '–' : formatDuration(Math.ceil(secondsLeft))}
            />
          )}
        </StatList>
        <p role="status" className={styles.muted}>
          {statusText(state)}
        </p>
      </Panel>
      {state.kind === 'stopped' && <StopReason error={state.error} />}
      {progress.badRows.length > 0 && (
        <BadRows fileName={state.file.name} badRows={progress.badRows} count={done.badCount} />
      )}
    </>
  );
}

function statusText({ kind, progress, file }: ProgressState): string {
  if (kind === 'done') return `All rows of ${file.name} were read.`;
  if (kind === 'stopped') {
    return `${pluralize(progress.done.endRow, 'row')} processed. Resume here, or choose the same file again later.`;
  }
  if (progress.waitingFor === undefined) return '';
  return `${describeError(progress.waitingFor).title}. The import continues automatically.`;
}

function Actions({ state }: { readonly state: ProgressState }) {
  if (state.kind === 'running') return <Button onClick={cancelImport}>Stop</Button>;
  if (state.kind === 'done') return null;
  const isBadRow = state.error instanceof BadRowError && !state.draft.skipsBadRows;
  return (
    <>
      {isBadRow && (
        <Button onClick={() => void continueImport({ skipsBadRows: true })}>
          Skip bad rows and continue
        </Button>
      )}
      <Button kind="primary" onClick={() => void continueImport()}>
        {isBadRow ? 'Try again' : 'Continue'}
      </Button>
    </>
  );
}

function StopReason({ error }: { readonly error: unknown }) {
  if (error === undefined) return null;
  if (!(error instanceof BadRowError))
    return <ErrorMessage error={error} title="The import stopped" />;
  const { row, problem } = error.badRow;
  return (
    <ErrorMessage title={`Row ${formatCount(row + 1)} is not valid`} error={new Error(problem)} />
  );
}
