// The options of a list: a table of how each is read from a first page and from a cursor.

import type { JsonObject } from '../../common/types.js';
import type { ListRequest } from '../api/database-api.js';
import type { IncludeMetadata, SortKey } from '../api/query-api.js';
import { sameJson } from '../api/repeated.js';
import { type OptionTable, optionKinds } from './page-options.js';

export interface ListOptions {
  readonly filter: JsonObject | null;
  /** Null for the order of arrival. */
  readonly sort: readonly SortKey[] | null;
  readonly limit: number;
  readonly includeMetadata: IncludeMetadata;
  readonly includeValues: boolean;
}

const { fixed, changeable } = optionKinds<ListRequest>();

export const LIST_OPTIONS: OptionTable<ListRequest, ListOptions> = {
  filter: fixed(({ filter = null }) => filter, { filter: sameJson }),
  sort: fixed(({ sort = null }) => sort, { sort: sameJson }),
  limit: changeable('limit', (_request, { pageLimitDefault }) => pageLimitDefault),
  includeMetadata: changeable('includeMetadata', () => true),
  includeValues: changeable('includeValues', () => false),
};
