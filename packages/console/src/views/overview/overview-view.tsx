// The overview: the state of the server, its traffic, its collections, aliases and limits.

import { Link } from 'wouter';
import { useScrapes } from '../../api/metrics.js';
import { useCollections, useLimits, useReadiness } from '../../api/queries.js';
import { CopyButton } from '../../ui/copy-button.js';
import { Meter } from '../../ui/meter.js';
import { PageLayout, Panel } from '../../ui/panel.js';
import { Empty, ErrorMessage, Loading } from '../../ui/states.js';
import { OpenServerNotice } from '../open-server-notice.js';
import { AliasPanel } from './alias-panel.js';
import { CollectionTable } from './collection-table.js';
import { NewCollectionButton } from './create-collection.js';
import { limitUsageOf } from './limit-usage.js';
import styles from './overview.module.css';
import { ServicePanel } from './service-panel.js';
import { TrafficPanel } from './traffic-panel.js';

export default function OverviewView() {
  const readiness = useReadiness();
  return (
    <PageLayout
      title="Overview"
      actions={
        <>
          <Link href="/import" className={styles.linkButton}>
            Import a file
          </Link>
          <NewCollectionButton />
        </>
      }
    >
      <OpenServerNotice />
      <ServicePanel readiness={readiness.data} />
      {readiness.error !== null && (
        <ErrorMessage error={readiness.error} onRetry={() => void readiness.refetch()} />
      )}
      <TrafficPanel />
      <CollectionsSection />
      <AliasPanel />
      <LimitsPanel />
    </PageLayout>
  );
}

function CollectionsSection() {
  const { data: collections, error, dataUpdatedAt, refetch } = useCollections();
  if (collections === undefined) {
    return error === null ? (
      <Loading label="Loading the collections" />
    ) : (
      <ErrorMessage error={error} onRetry={() => void refetch()} />
    );
  }
  if (collections.length === 0) return <NoCollections />;
  return <CollectionTable collections={collections} updatedAtMs={dataUpdatedAt} />;
}

const COMMANDS = [
  { text: 'sagitta demo', what: 'Start a server with sample data' },
  {
    text: 'sagitta import vectors.parquet --collection documents',
    what: 'Import a file from the command line',
  },
];

function NoCollections() {
  return (
    <Panel>
      <Empty title="No collections yet">
        <p>
          <Link href="/import">Import a file</Link> with vectors (Parquet, Arrow, NDJSON, CSV or
          npy), or create an empty collection above.
        </p>
        <div className={styles.first}>
          {COMMANDS.map(({ text, what }) => (
            <div key={text}>
              <p>{what}</p>
              <div className={styles.command}>
                <pre>{text}</pre>
                <CopyButton text={text} label={`Copy: ${text}`} />
              </div>
            </div>
          ))}
        </div>
      </Empty>
    </Panel>
  );
}

function LimitsPanel() {
  const { data: scrapes } = useScrapes();
  const { data: limits } = useLimits();
  const metrics = scrapes?.at(-1)?.metrics;
  if (metrics === undefined || limits === undefined) return null;
  return (
    <Panel title="Limits">
      <div className={styles.meters}>
        {limitUsageOf(metrics, limits).map((usage) => (
          <Meter key={usage.label} {...usage} />
        ))}
      </div>
    </Panel>
  );
}
