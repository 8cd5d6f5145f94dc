// The rows of a collection as a list of which any part can be shown: all of one snapshot, in the order
// and with the filter asked for.

import type {
  Client,
  CollectionRecord,
  JsonObject,
  ListRequest,
  StoredVector,
} from '@sagitta/client';
import { SagittaClientError } from '@sagitta/client';
import { keepPreviousData } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { queryClient, useApi } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import type { SortState } from '../vectors/table-header.js';
import { RowPages } from './row-pages.js';

type Row = StoredVector<JsonObject, Float32Array>;

export interface RowsRequest {
  readonly filter: JsonObject | undefined;
  readonly sort: SortState | undefined;
  readonly hasValues: boolean;
}

export interface Rows {
  /** Undefined until the list is open. */
  readonly rowCount: number | undefined;
  /** Those of the first page, which widths of columns are made for. */
  readonly firstRows: readonly Row[] | undefined;
  readonly rowAt: (index: number) => Row | undefined;
  readonly onRangeChange: (first: number, last: number) => void;
  /** The ids of rows, whether they have been shown or not; none when that fails, which `error` says. */
  readonly readIds: (first: number, last: number) => Promise<string[]>;
  readonly error: unknown;
  /** What is shown is not yet what was asked for. */
  readonly isOld: boolean;
  /** Opens the list anew, at the present state of the collection. */
  readonly refresh: () => void;
}

const PAGE_ROWS_MAX = 100;
/** Values of one page as text: about 3 MB. */
const PAGE_VALUES_MAX = 300_000;
/** With metadata of 1 kB each, about 20 MB. */
const KEPT_ROWS = 20_000;
const IDS_PER_REQUEST = 1_000;
/** Rows that fly by are not asked for. */
const SHOW_MS = 60;

export function useRows(collection: CollectionRecord, request: RowsRequest): Rows {
  const { id } = collection;
  const key = ['collection', id, 'rows', request];
  const pageRows = rowsOfPage(collection, request.hasValues);
  const opened = useApi(
    key,
    async (client, signal) => {
      const base = listRequest(request);
      const page = await client
        .collection(id)
        .list({ ...base, offset: 0, limit: pageRows }, { signal });
      return { ...page, base };
    },
    { staleTime: Infinity, refetchOnWindowFocus: false, placeholderData: keepPreviousData },
  );
  const { data } = opened;
  const { client } = useStore(session);
  const [version, setVersion] = useState(0);
  const [failure, setFailure] = useState<unknown>();
  const refresh = useCallback(() => {
    setFailure(undefined);
    void queryClient.invalidateQueries({ queryKey: ['collection', id] });
  }, [id]);

  const list = useMemo(() => data && openList(client, id, data), [client, id, data]);
  const pages = useMemo(() => {
    if (data === undefined || list === undefined) return undefined;
    const made = new RowPages<Row>(list.readRows, {
      pageRows,
      pagesMax: Math.ceil(KEPT_ROWS / pageRows),
      onChange: () => setVersion((before) => before + 1),
      // A snapshot is kept for some minutes only.
      onError: (error) => (isExpired(error) ? refresh() : setFailure(error)),
    });
    made.addFirst(data.vectors);
    return made;
  }, [data, list, pageRows, refresh]);
  const onRangeChange = useRange(pages);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another version has other rows
  const rowAt = useCallback((index: number) => pages?.rowAt(index), [pages, version]);
  const readIds = useCallback(
    async (first: number, last: number) => {
      try {
        return (await list?.readIds(first, last)) ?? [];
      } catch (error) {
        setFailure(error);
        return [];
      }
    },
    [list],
  );
  return {
    rowCount: data?.total,
    firstRows: data?.vectors,
    rowAt,
    onRangeChange,
    readIds,
    error: opened.error ?? failure ?? undefined,
    isOld: opened.isPlaceholderData || opened.isRefetching,
    refresh,
  };
}

/** Shows the latest range soon, and again when the pages are others. */
function useRange(pages: RowPages<Row> | undefined) {
  const range = useRef({ first: 0, last: 0 });
  const current = useRef(pages);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    current.current = pages;
    pages?.show(range.current.first, range.current.last);
    return () => pages?.close();
  }, [pages]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback((first: number, last: number) => {
    range.current = { first, last };
    // Not put off by further movements, so that rows come also while the table scrolls on.
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      current.current?.show(range.current.first, range.current.last);
    }, SHOW_MS);
  }, []);
}

interface OpenedList {
  readonly base: ListRequest<JsonObject, 'float32'>;
  /** Names the snapshot; absent when the first page has all rows. */
  readonly next_cursor?: string;
}

/** Reads any part of the list from the snapshot of its first page. */
function openList(client: Client, id: string, { base, next_cursor: cursor }: OpenedList) {
  const vectors = client.collection(id);
  const place = cursor === undefined ? {} : { cursor };
  return {
    async readRows(offset: number, limit: number, signal: AbortSignal) {
      const page = await vectors.list({ ...base, ...place, offset, limit }, { signal });
      return page.vectors;
    },
    async readIds(first: number, last: number) {
      const ids: string[] = [];
      for (let offset = first; offset < last; offset += IDS_PER_REQUEST) {
        const page = await vectors.list({
          ...base,
          ...place,
          include_values: false,
          include_metadata: false,
          offset,
          limit: Math.min(IDS_PER_REQUEST, last - offset),
        });
        ids.push(...page.vectors.map((row) => row.id));
      }
      return ids;
    },
  };
}

function listRequest({ filter, sort, hasValues }: RowsRequest): ListRequest<JsonObject, 'float32'> {
  return {
    ...(filter !== undefined && { filter }),
    ...(sort !== undefined && {
      sort: [{ field: sort.key, order: sort.isDescending ? 'desc' : 'asc' }],
    }),
    ...(hasValues && { include_values: 'float32' }),
  };
}

function rowsOfPage({ dimension = 0, vectors = {} }: CollectionRecord, hasValues: boolean): number {
  if (!hasValues) return PAGE_ROWS_MAX;
  const named = Object.values(vectors).reduce((sum, one) => sum + one.dimension, 0);
  const rows = Math.floor(PAGE_VALUES_MAX / Math.max(1, dimension + named));
  return Math.min(PAGE_ROWS_MAX, Math.max(10, rows));
}

function isExpired(error: unknown): boolean {
  return error instanceof SagittaClientError && error.code === 'cursor_expired';
}
