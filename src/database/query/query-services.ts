// The services of queries and lists.

import type { RowOrders } from '../order/row-orders.js';
import type { ReadServices } from '../search/read-services.js';
import type { CursorSealer } from './cursor.js';

export interface QueryServices extends ReadServices {
  readonly rowOrders: RowOrders;
  readonly sealer: CursorSealer;
}
