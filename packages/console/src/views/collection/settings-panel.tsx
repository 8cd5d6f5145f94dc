// The state and the settings of a collection.

import type { CollectionRecord } from '@sagitta/client';
import type { ReactNode } from 'react';
import { formatBytes, formatCount, formatDuration, formatTime } from '../../ui/format.js';
import { Badge, Panel, Stat, StatList } from '../../ui/panel.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import styles from './schema.module.css';

export function SettingsPanel({ collection }: CollectionViewProps) {
  const { memory, status } = collection;
  return (
    <Panel>
      <StatList>
        <Stat
          label="Vectors"
          value={formatCount(collection.vector_count)}
          note={status === 'ready' ? undefined : <Badge tone="warning">{status}</Badge>}
        />
        {collection.dimension !== undefined && (
          <Stat label="Dimension" value={formatCount(collection.dimension)} />
        )}
        {collection.metric !== undefined && <Stat label="Metric" value={collection.metric} />}
        <Stat label="Engine" value={collection.engine.name} />
        <Stat label="Memory" value={formatBytes(memory.host_bytes)} note={otherMemory(memory)} />
        <Stat label="Disk" value={formatBytes(collection.disk_bytes)} />
        <Stat label="Sequence" value={formatCount(collection.sequence)} note="of the last write" />
      </StatList>
      <dl className={styles.settings}>
        {settingsOf(collection).map(([name, value]) => (
          <div key={name} className={styles.setting}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

function otherMemory({ mapped_bytes: mapped, device_bytes: device }: CollectionRecord['memory']) {
  const parts = [
    ...(mapped > 0 ? [`${formatBytes(mapped)} of mapped files`] : []),
    ...(device > 0 ? [`${formatBytes(device)} on devices`] : []),
  ];
  return parts.length === 0 ? undefined : `and ${parts.join(', ')}`;
}

/** Names and values of the settings; unset ones are left out. */
function settingsOf(collection: CollectionRecord): readonly (readonly [string, ReactNode])[] {
  const { engine, labels, ttl_seconds: ttl, text, embedding } = collection;
  return [
    ['Reason for the engine', engine.reason],
    ['Labels', <Labels key="labels" labels={labels} />],
    [
      'Expiry',
      ttl === undefined
        ? 'No default expiry'
        : `${formatDuration(ttl)} after the write, unless the write sets an expiry`,
    ],
    ...(text === undefined ? [] : [['Text index', describeText(text)] as const]),
    ...(embedding === undefined
      ? []
      : [['Embedding', `${embedding.model} at ${embedding.endpoint}`] as const]),
    ['Created', formatTime(collection.created_at)],
    ['Settings changed', formatTime(collection.updated_at)],
  ];
}

function describeText({
  fields,
  language,
  stop_words: stopWords,
  k1,
  b,
}: NonNullable<CollectionRecord['text']>): string {
  const words = stopWords.length === 0 ? 'no stop words' : `${stopWords.length} stop words`;
  return `${fields.join(', ')}: ${language ?? 'words unchanged'}, ${words}, k1 ${k1}, b ${b}`;
}

function Labels({ labels }: { readonly labels: Readonly<Record<string, string>> }) {
  const entries = Object.entries(labels);
  if (entries.length === 0) return 'None';
  return (
    <ul className={styles.labels}>
      {entries.map(([name, value]) => (
        <li key={name} className={styles.label} dir="auto">
          {name}: <strong>{value}</strong>
        </li>
      ))}
    </ul>
  );
}
