// What the browse view shows of each collection. It outlives the view, so that going to another tab
// loses nothing; columns and their widths are remembered by the browser.

import type { CollectionRecord, FoundPath, JsonObject } from '@sagitta/client';
import { createStore, type Store } from '../../api/store.js';
import { pictureShape } from '../vectors/preview.js';
import type { SortState } from '../vectors/table-header.js';

export interface BrowseState {
  readonly filter: JsonObject | undefined;
  readonly isFilterShown: boolean;
  readonly sort: SortState | undefined;
  readonly selection: ReadonlySet<string>;
  /** The vector whose details are shown. */
  readonly openId: string | undefined;
  /** The keys of columns after the id; undefined until they are chosen. */
  readonly columns: readonly string[] | undefined;
  readonly widths: Readonly<Record<string, number>>;
}

/** Columns that are not metadata. */
export const PICTURE_KEY = '$picture';
export const VALUES_KEY = '$values';

const states = new Map<string, Store<BrowseState>>();

export function browseState(collectionId: string): Store<BrowseState> {
  let state = states.get(collectionId);
  if (state === undefined) {
    state = createStore<BrowseState>({
      filter: undefined,
      isFilterShown: false,
      sort: undefined,
      selection: new Set(),
      openId: undefined,
      ...readRemembered(collectionId),
    });
    states.set(collectionId, state);
  }
  return state;
}

const STORAGE_KEY = 'sagitta.columns.';

type Remembered = Pick<BrowseState, 'columns' | 'widths'>;

export function rememberColumns(collectionId: string, { columns, widths }: Remembered): void {
  localStorage.setItem(STORAGE_KEY + collectionId, JSON.stringify({ columns, widths }));
}

/** What another version of the page stored may be anything. */
function readRemembered(collectionId: string): Remembered {
  try {
    const text = localStorage.getItem(STORAGE_KEY + collectionId);
    const { columns, widths } = JSON.parse(text ?? '{}') as Partial<Remembered>;
    return { columns: Array.isArray(columns) ? columns : undefined, widths: { ...widths } };
  } catch {
    return { columns: undefined, widths: {} };
  }
}

const DEFAULT_PATHS_MAX = 6;
/** Beyond it values make pages slow; they can be chosen. */
const DEFAULT_VALUES_MAX = 1_024;
const TITLES = /^(title|name|lemma|label|headline|subject)$/i;

/** The columns until others are chosen: what names a vector, then what most vectors have. */
export function defaultColumns(
  collection: CollectionRecord,
  paths: readonly FoundPath[],
): readonly string[] {
  const metadata = paths
    .filter(({ count, types }) => types.object < count)
    .sort((a, b) => Number(TITLES.test(b.path)) - Number(TITLES.test(a.path)) || b.count - a.count)
    .slice(0, DEFAULT_PATHS_MAX)
    .map(({ path }) => path);
  const { dimension = 0 } = collection;
  const hasValues = dimension > 0 && dimension <= DEFAULT_VALUES_MAX;
  return [
    ...(pictureShape(collection) === undefined ? [] : [PICTURE_KEY]),
    ...metadata,
    ...(hasValues ? [VALUES_KEY] : []),
  ];
}

/** Whether rows have to be read with their values for these columns. */
export function needsValues(collection: CollectionRecord, columns: readonly string[]): boolean {
  const isPicture = columns.includes(PICTURE_KEY) && pictureShape(collection) !== undefined;
  return isPicture || columns.includes(VALUES_KEY);
}
