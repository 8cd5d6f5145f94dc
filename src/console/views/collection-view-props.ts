// What every view of a collection gets.

import type { CollectionRecord } from '../../client/client.js';

export interface CollectionViewProps {
  readonly collection: CollectionRecord;
}
