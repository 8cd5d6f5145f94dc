// The state of the browse view for each collection. It outlives the view, so that it survives a visit to
// another tab; the browser remembers columns and their widths.

import type { CollectionRecord, FoundPath, JsonObject } from '@sagitta/client';
import { createStore, type ValueStore } from '../../api/store.js';
import { pictureShape } from '../vectors/preview.js';
import type { SortState } from '../vectors/table-header.js';

export interface BrowseState {
  readonly filter: JsonObject | undefined;
  readonly isFilterShown: boolean;
  readonly sort: SortState | undefined;
  readonly selection: ReadonlySet<string>;
  /** The vector whose details are shown. */
  readonly openId: string | undefined;
  /** The keys of the columns after the id; undefined until the user chooses them. */
  readonly columns: readonly string[] | undefined;
  readonly widths: Readonly<Record<string, number>>;
}

/** Columns that are not metadata. */
export const PICTURE_KEY = '$picture';
export const VALUES_KEY = '$values';

const states = new Map<string, ValueStore<BrowseState>>();

export function browseState(collectionId: string): ValueStore<BrowseState> {
  let state = states.get(collectionId);
  if (state === undefined) {
    state = createStore<BrowseState>({
      filter: undefined,
      isFilterShown: false,
      sort: undefined,
      selection: new Set(),
      openId: undefined,
      ...readColumns(collectionId),
    });
    states.set(collectionId, state);
  }
  return state;
}

const STORAGE_KEY = 'sagitta.columns.';

type ColumnSettings = Pick<BrowseState, 'columns' | 'widths'>;

export function rememberColumns(collectionId: string, { columns, widths }: ColumnSettings): void {
  localStorage.setItem(STORAGE_KEY + collectionId, JSON.stringify({ columns, widths }));
}

/** Checks the types, because another version of the page may have stored anything. */
function readColumns(collectionId: string): ColumnSettings {
  try {
    const text = localStorage.getItem(STORAGE_KEY + collectionId);
    const { columns, widths } = JSON.parse(text ?? '{}') as Partial<ColumnSettings>;
    return { columns: Array.isArray(columns) ? columns : undefined, widths: { ...widths } };
  } catch {
    return { columns: undefined, widths: {} };
  }
}

const DEFAULT_PATHS_MAX = 6;
/** Longer vectors make pages slow, so their values are not shown by default. */
const DEFAULT_VALUES_MAX = 1_024;
const TITLES = /^(title|name|lemma|label|headline|subject)$/i;

/** So that several cards fit onto a phone. */
const CARD_COLUMNS_MAX = 4;

/** The columns until the user chooses others: titles first, then the most frequent paths; fewer for cards. */
export function defaultColumns(
  collection: CollectionRecord,
  paths: readonly FoundPath[],
  isCards = false,
): readonly string[] {
  const metadata = paths
    .filter(({ count, types }) => types.object < count)
    .sort((a, b) => Number(TITLES.test(b.path)) - Number(TITLES.test(a.path)) || b.count - a.count)
    .slice(0, DEFAULT_PATHS_MAX)
    .map(({ path }) => path);
  const { dimension = 0 } = collection;
  const hasValues = dimension > 0 && dimension <= DEFAULT_VALUES_MAX;
  const columns = [
    ...(pictureShape(collection) === undefined ? [] : [PICTURE_KEY]),
    ...metadata,
    ...(hasValues ? [VALUES_KEY] : []),
  ];
  return isCards ? columns.slice(0, CARD_COLUMNS_MAX) : columns;
}

/** Whether these columns need the values of the rows. */
export function needsValues(collection: CollectionRecord, columns: readonly string[]): boolean {
  const isPicture = columns.includes(PICTURE_KEY) && pictureShape(collection) !== undefined;
  return isPicture || columns.includes(VALUES_KEY);
}
