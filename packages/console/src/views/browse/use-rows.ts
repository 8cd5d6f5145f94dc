// The rows of a collection as a list with random access, all from one snapshot, filtered and sorted as
// requested.

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

export interface RowList {
  /** Undefined until the first page has arrived. */
  readonly rowCount: number | undefined;
  /** The rows of the first page, which determine the widths of columns. */
  readonly firstRows: readonly Row[] | undefined;
  readonly rowAt: (index: number) => Row | undefined;
  readonly onRangeChange: (first: number, last: number) => void;
  /** Reads the ids of rows, shown or not. Resolves to no ids and sets `error` on failure. */
  readonly readIds: (first: number, last: number) => Promise<string[]>;
  readonly error: unknown;
  /** Whether the rows are still those of the previous request. */
  readonly isOutdated: boolean;
  /** Reopens the list on the current state of the collection. */
  readonly refresh: () => void;
}

const PAGE_ROWS_MAX = 100;
/** The values of one page; as text they take about 3 MB. */
const PAGE_VALUES_MAX = 300_000;
/** About 20 MB if each row has 1 kB of metadata. */
const KEPT_ROWS = 20_000;
const IDS_PER_REQUEST = 1_000;
/** Delays requests, so that rows that scroll past quickly are not requested. */
const SHOW_DELAY_MS = 60;

export function useRows(collection: CollectionRecord, request: RowsRequest): RowList {
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
    const created = new RowPages<Row>(list.readRows, {
      pageRows,
      pagesMax: Math.ceil(KEPT_ROWS / pageRows),
      onChange: () => setVersion((before) => before + 1),
      // The server keeps a snapshot only for some minutes.
      onError: (error) => (isExpired(error) ? refresh() : setFailure(error)),
    });
    created.addFirst(data.vectors);
    return created;
  }, [data, list, pageRows, refresh]);
  const onRangeChange = useRange(pages);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version means other rows
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
    isOutdated: opened.isPlaceholderData || opened.isRefetching,
    refresh,
  };
}

/** Shows the latest range after a short delay, and again when `pages` changes. */
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
    // More scrolling does not restart the delay, so rows also arrive during a long scroll.
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      current.current?.show(range.current.first, range.current.last);
    }, SHOW_DELAY_MS);
  }, []);
}

interface OpenedList {
  readonly base: ListRequest<JsonObject, 'float32'>;
  /** Identifies the snapshot; absent if the first page has all rows. */
  readonly next_cursor?: string;
}

/** Reads any part of the list from the snapshot of its first page. */
function openList(client: Client, id: string, { base, next_cursor: cursor }: OpenedList) {
  const vectors = client.collection(id);
  const snapshot = cursor === undefined ? {} : { cursor };
  return {
    async readRows(offset: number, limit: number, signal: AbortSignal) {
      const page = await vectors.list({ ...base, ...snapshot, offset, limit }, { signal });
      return page.vectors;
    },
    async readIds(first: number, last: number) {
      const ids: string[] = [];
      for (let offset = first; offset < last; offset += IDS_PER_REQUEST) {
        const page = await vectors.list({
          ...base,
          ...snapshot,
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
