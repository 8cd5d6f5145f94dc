// What every view of a collection gets.

import type { CollectionRecord } from '@sagitta/client';

export interface CollectionViewProps {
  readonly collection: CollectionRecord;
}
