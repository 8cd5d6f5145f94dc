// Imports a file: choose it, preview it, choose columns and target, and watch the progress.

import { useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { formatBytes } from '../../ui/format.js';
import { PageLayout, Panel } from '../../ui/panel.js';
import { ErrorMessage, Loading } from '../../ui/states.js';
import { DropZone } from './drop-zone.js';
import { FilePreviewPanel } from './file-preview-panel.js';
import { ImportForm } from './import-form.js';
import { closeImport, type ImportState, importState } from './import-session.js';
import { ProgressPanel } from './progress-panel.js';

export default function ImportView() {
  const state = useStore(importState);
  return (
    <PageLayout
      title="Import"
      subtitle={
        state.kind === 'empty' ? undefined : `${state.file.name}, ${formatBytes(state.file.size)}`
      }
      actions={
        state.kind !== 'empty' &&
        state.kind !== 'running' && <Button onClick={closeImport}>Choose another file</Button>
      }
    >
      <ImportStage state={state} />
    </PageLayout>
  );
}

function ImportStage({ state }: { readonly state: ImportState }) {
  switch (state.kind) {
    case 'empty':
      return <DropZone />;
    case 'opening':
      return (
        <Panel>
          <Loading label="Reading the file" />
        </Panel>
      );
    case 'unreadable':
      return (
        <>
          <ErrorMessage error={state.error} title="The file cannot be imported" />
          <DropZone />
        </>
      );
    case 'ready':
      return (
        <>
          <FilePreviewPanel preview={state.preview} plan={state.draft.plan} />
          <ImportForm {...state} />
        </>
      );
    case 'running':
    case 'stopped':
    case 'done':
      return <ProgressPanel state={state} />;
  }
}
