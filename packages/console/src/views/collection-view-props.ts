// The properties of every view of a collection, and of the dialogs about one.

import type { CollectionRecord } from '@sagitta/client';

export interface CollectionViewProps {
  readonly collection: CollectionRecord;
}

export interface CollectionDialogProps extends CollectionViewProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}
