// The settings of a collection, its vectors, its segments, and the metadata that the server found in it.

import { useState } from 'react';
import { Button } from '../../ui/button.js';
import { PageLayout } from '../../ui/panel.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { AddVectorDialog } from './change-vectors.js';
import { CloneDialog, DeleteCollection, EditDialog, RenameDialog } from './collection-dialogs.js';
import { MetadataPanel } from './metadata-panel.js';
import { SegmentsPanel } from './segments-panel.js';
import { SettingsPanel } from './settings-panel.js';
import { VectorsPanel } from './vectors-panel.js';

type OpenDialog = 'edit' | 'add' | 'clone' | 'rename' | 'delete';

export default function SchemaView({ collection }: CollectionViewProps) {
  const [dialog, setDialog] = useState<OpenDialog>();
  const dialogProps = (name: OpenDialog) => ({
    collection,
    isOpen: dialog === name,
    onClose: () => setDialog(undefined),
  });
  return (
    <PageLayout
      title={collection.id}
      subtitle={
        collection.description === null ? undefined : (
          <span dir="auto">{collection.description}</span>
        )
      }
      actions={
        <>
          <Button onClick={() => setDialog('edit')}>Edit</Button>
          <Button onClick={() => setDialog('add')}>Add a vector</Button>
          <Button onClick={() => setDialog('clone')}>Clone</Button>
          <Button onClick={() => setDialog('rename')}>Rename</Button>
          <Button kind="danger" onClick={() => setDialog('delete')}>
            Delete
          </Button>
        </>
      }
    >
      <SettingsPanel collection={collection} />
      <MetadataPanel collection={collection} />
      <VectorsPanel collection={collection} />
      <SegmentsPanel collection={collection} />
      <EditDialog {...dialogProps('edit')} />
      <AddVectorDialog {...dialogProps('add')} />
      <CloneDialog {...dialogProps('clone')} />
      <RenameDialog {...dialogProps('rename')} />
      <DeleteCollection {...dialogProps('delete')} />
    </PageLayout>
  );
}
