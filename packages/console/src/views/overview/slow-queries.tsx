// The slowest queries that the server remembers, with the time of each phase. It keeps neither vectors nor values.

import type { SlowQuery } from '@sagitta/client';
import { useState } from 'react';
import { Link } from 'wouter';
import { useTraffic } from '../../api/metrics.js';
import { Button } from '../../ui/button.js';
import { CopyButton } from '../../ui/copy-button.js';
import { type DataColumn, DataTable, Truncated } from '../../ui/data-table.js';
import { formatMilliseconds, formatTime } from '../../ui/format.js';
import { Badge, Panel } from '../../ui/panel.js';
import { collectionPath } from '../routes.js';
import styles from './overview.module.css';
import { describeQuery, phasesOf } from './traffic.js';
import { HISTORY_MINUTES } from './traffic-panel.js';

const SHOWN_FIRST = 5;
/** Keeps a number with its unit. */
const NO_BREAK = '\u00a0';
/** Phases below this share of the time are left out. */
const SHARE_MIN = 0.02;

const COLUMNS: readonly DataColumn<SlowQuery>[] = [
  {
    label: 'Collection',
    cell: ({ collection }) => (
      <Link href={collectionPath(collection, 'query')} className={styles.idLink} title={collection}>
        {collection}
      </Link>
    ),
  },
  { label: 'Time', cell: ({ time }) => <span className={styles.when}>{formatTime(time)}</span> },
  {
    label: 'Duration',
    kind: 'number',
    cell: ({ milliseconds }) => formatMilliseconds(milliseconds),
  },
  { label: 'Where the time went', cell: (query) => <Phases query={query} /> },
  { label: 'Query', cell: (query) => <What query={query} /> },
  {
    label: 'Request',
    cell: ({ request_id: id }) => (
      <span className={styles.request}>
        <Truncated text={id} isMuted />
        <CopyButton text={id} label={`Copy: ${id}`} />
      </span>
    ),
  },
];

/** Missing, like the traffic, without the scope for it, and until it has been loaded. */
export function SlowQueries() {
  const { data: traffic } = useTraffic(HISTORY_MINUTES);
  const [isLong, setLong] = useState(false);
  if (traffic === undefined) return null;
  const { slow_queries: queries } = traffic;
  const isCut = !isLong && queries.length > SHOWN_FIRST;
  return (
    <Panel
      title="Slowest queries"
      actions={
        queries.length > SHOWN_FIRST && (
          <Button kind="quiet" onClick={() => setLong(!isLong)}>
            {isLong ? 'Show fewer' : `Show all ${queries.length}`}
          </Button>
        )
      }
    >
      {queries.length === 0 ? (
        <p className={styles.note}>No queries in the last 60 minutes.</p>
      ) : (
        <DataTable
          label="Slowest queries"
          columns={COLUMNS}
          rows={isCut ? queries.slice(0, SHOWN_FIRST) : queries}
          keyOf={({ time, request_id: id, milliseconds }) => `${time} ${id} ${milliseconds}`}
        />
      )}
    </Panel>
  );
}

function Phases({ query }: { readonly query: SlowQuery }) {
  const phases = phasesOf(query);
  const textOf = (shown: typeof phases) =>
    shown
      .map(({ name, ms }) => `${name} ${formatMilliseconds(ms)}`.replaceAll(' ', NO_BREAK))
      .join(', ');
  const long = phases.filter(({ ms }) => ms >= query.milliseconds * SHARE_MIN);
  return (
    <span className={styles.phases} title={textOf(phases)}>
      {textOf(long)}
    </span>
  );
}

/** The shape of the filter is the tooltip. */
function What({ query }: { readonly query: SlowQuery }) {
  return (
    <span className={styles.what} title={query.filter}>
      {describeQuery(query)} {query.code !== undefined && <Badge tone="danger">{query.code}</Badge>}
    </span>
  );
}
