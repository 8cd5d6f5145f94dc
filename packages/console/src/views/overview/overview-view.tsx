// The overview: the collections with what they are doing, the traffic and the slowest queries of the server, aliases,
// and how much memory, disk and limits are used.

import { Link } from 'wouter';
import { useCollections } from '../../api/queries.js';
import { CopyButton } from '../../ui/copy-button.js';
import { PageLayout, Panel } from '../../ui/panel.js';
import { Empty, ErrorMessage, Loading } from '../../ui/states.js';
import { OpenServerNotice } from '../open-server-notice.js';
import { AliasPanel } from './alias-panel.js';
import { CollectionTable } from './collection-table.js';
import { NewCollectionButton } from './create-collection.js';
import styles from './overview.module.css';
import { ResourcesPanel } from './resources-panel.js';
import { ReadinessProblems, ServerState } from './server-state.js';
import { SlowQueries } from './slow-queries.js';
import { TrafficPanel } from './traffic-panel.js';

export default function OverviewView() {
  return (
    <PageLayout
      title="Overview"
      subtitle={<ServerState />}
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
      <ReadinessProblems />
      <CollectionsSection />
      <TrafficPanel />
      <SlowQueries />
      <AliasPanel />
      <ResourcesPanel />
    </PageLayout>
  );
}

function CollectionsSection() {
  const { data: collections, error, refetch } = useCollections();
  if (collections === undefined) {
    return (
      <Panel title="Collections">
        {error === null ? (
          <Loading label="Loading the collections" />
        ) : (
          <ErrorMessage error={error} onRetry={() => void refetch()} />
        )}
      </Panel>
    );
  }
  if (collections.length === 0) return <NoCollections />;
  return <CollectionTable collections={collections} />;
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
