// What every dialog about a collection gets.

import type { CollectionViewProps } from '../collection-view-props.js';

export interface CollectionDialogProps extends CollectionViewProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}
