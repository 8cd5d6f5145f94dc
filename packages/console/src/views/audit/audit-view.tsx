// The audit events, newest first; new ones appear while the first page is shown.

import type { AuditPage, AuditRequest } from '@sagitta/client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { session } from '../../api/session.js';
import { createStore, useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { formatTime, pluralize } from '../../ui/format.js';
import { PageLayout, Panel } from '../../ui/panel.js';
import { Empty, ErrorMessage, Loading } from '../../ui/states.js';
import { useDebounced } from '../../ui/use-debounced.js';
import { AdminOnly } from '../admin-only.js';
import styles from './audit.module.css';
import { type AuditFilter, auditRequestOf, NO_FILTER } from './audit-filter.js';
import { AuditFilterForm } from './audit-filter-form.js';
import { AuditTable } from './audit-table.js';

const PAGE_EVENTS = 100;
const LIVE_MS = 3_000;
const TYPING_MS = 300;

/** Outside the component, so that the filter survives a visit to another view. */
const filterStore = createStore<AuditFilter>(NO_FILTER);

export default function AuditView() {
  return (
    <AdminOnly title="Audit">
      {() => (
        <PageLayout
          title="Audit"
          subtitle="Every change to collections, aliases, keys and backups, including failed attempts."
        >
          <AuditList />
        </PageLayout>
      )}
    </AdminOnly>
  );
}

function AuditList() {
  const filter = useStore(filterStore);
  const request = auditRequestOf(useDebounced(filter, TYPING_MS));
  const query = useAuditPages(request);
  const pages = query.data?.pages ?? [];
  const events = pages.flatMap((page) => page.events);
  const isLive = pages.length <= 1;
  return (
    <>
      <Panel>
        <AuditFilterForm filter={filter} onChange={(next) => filterStore.set(next)} />
        <div className={styles.summaryRow}>
          <p className={styles.summary} role="status">
            {pages[0] !== undefined && summaryOf(pages[0], isLive)}
          </p>
          <Button kind="quiet" onClick={() => filterStore.set(NO_FILTER)}>
            Clear the filter
          </Button>
        </div>
      </Panel>
      {query.error !== null && (
        <ErrorMessage error={query.error} onRetry={() => void query.refetch()} />
      )}
      {pages.length === 0 && query.error === null && <Loading label="Loading the events" />}
      {pages.length > 0 && events.length === 0 && (
        <Panel>
          <Empty title="No events match the filter" />
        </Panel>
      )}
      {events.length > 0 && <AuditTable events={events} />}
      {query.hasNextPage && (
        <div>
          <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show older events
          </Button>
        </div>
      )}
    </>
  );
}

function useAuditPages(request: AuditRequest) {
  const { client } = useStore(session);
  return useInfiniteQuery({
    queryKey: ['audit', request],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor, signal }) =>
      client.audit.list(cursor === undefined ? { ...request, limit: PAGE_EVENTS } : { cursor }, {
        signal,
      }),
    getNextPageParam: (page: AuditPage) => page.next_cursor,
    // Older pages belong to a cursor, so fetching all of them again would change nothing.
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) <= 1 ? LIVE_MS : false),
    refetchOnWindowFocus: ({ state }) => (state.data?.pages.length ?? 0) <= 1,
  });
}

function summaryOf({ total, since }: AuditPage, isLive: boolean): string {
  const kept = since === null ? '' : `; events are kept since ${formatTime(since)}`;
  return `${pluralize(total, 'event')}${isLive ? ', live' : ''}${kept}`;
}
