// The state of the server in one line, and the collections that are not ready. Engine and uptime come from the metrics
// and are missing without the scope for them.

import type { Readiness } from '@sagitta/client';
import { useMetrics } from '../../api/metrics.js';
import { sumOf } from '../../api/metrics-text.js';
import { useApi, useReadiness } from '../../api/queries.js';
import { formatDuration } from '../../ui/format.js';
import { Badge } from '../../ui/panel.js';
import { ErrorMessage } from '../../ui/states.js';
import styles from './overview.module.css';

const TONES = {
  ready: 'success',
  starting: 'warning',
  stopping: 'warning',
  not_writable: 'danger',
} as const;
const STATUS_TEXTS = {
  ready: 'Ready',
  starting: 'Starting',
  stopping: 'Stopping',
  not_writable: 'Writes fail',
};

export function ServerState() {
  const { data: readiness } = useReadiness();
  const { data: metrics } = useMetrics();
  const { data: info } = useApi(['info'], (client, signal) => client.service.info({ signal }));
  const build = metrics?.get('sagitta_build_info')?.[0]?.labels;
  const start = metrics && sumOf(metrics, 'process_start_time_seconds');
  const facts = [
    ...(info === undefined ? [] : [`version ${info.version}`]),
    ...(build === undefined
      ? []
      : [`Node ${build.node?.replace(/^v/, '')}`, `engine ${build.engine}`]),
    ...(start === undefined
      ? []
      : [`up ${formatDuration(Math.max(0, Date.now() / 1000 - start))}`]),
  ];
  return (
    <span className={styles.state}>
      {readiness !== undefined && (
        <Badge tone={TONES[readiness.status]}>{STATUS_TEXTS[readiness.status]}</Badge>
      )}
      <span>{facts.join(' · ')}</span>
    </span>
  );
}

export function ReadinessProblems() {
  const { data: readiness, error, refetch } = useReadiness();
  return (
    <>
      {error !== null && <ErrorMessage error={error} onRetry={() => void refetch()} />}
      {readiness !== undefined && <NotReady {...readiness} />}
    </>
  );
}

function NotReady({ reason, problems, collections_not_ready: collections }: Readiness) {
  // The reason is the detail of one of the problems where a client may see them.
  const texts = [...new Set([reason ?? [], problems.map(({ detail }) => detail)].flat())];
  if (texts.length === 0 && collections.length === 0) return null;
  return (
    <ul className={styles.notReady}>
      {texts.map((text) => (
        <li key={text}>{text}</li>
      ))}
      {collections.map(({ id, status, reason: why }) => (
        <li key={id}>
          <strong>{id}</strong> is {status}: {why}
        </li>
      ))}
    </ul>
  );
}
