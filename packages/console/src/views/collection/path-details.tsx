// The most frequent values of one metadata path and a histogram of its numbers, which the server counts
// when the row is opened.

import type { FoundPath, JsonObject } from '@sagitta/client';
import { useApi } from '../../api/queries.js';
import { HistogramBars, ValueBars } from '../../ui/distribution.js';
import { formatCount, formatNumber, formatScore } from '../../ui/format.js';
import { ErrorMessage, Loading } from '../../ui/states.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { hasNumbers, hasValues } from './found-types.js';
import styles from './schema.module.css';

interface PathDetailsProps extends CollectionViewProps {
  readonly path: FoundPath;
  readonly filter: JsonObject | undefined;
}

const VALUES_SHOWN = 10;
const BUCKETS = 32;

export function PathDetails({ collection, path, filter }: PathDetailsProps) {
  const name = path.path;
  const { data, error, refetch } = useApi(
    ['collection', collection.id, 'values', name, filter],
    (client, signal) =>
      client.collection(collection.id).aggregate(
        {
          ...(filter !== undefined && { filter }),
          facets: [{ path: name, limit: VALUES_SHOWN }],
          ...(hasNumbers(path) && {
            stats: [{ path: name, histogram: { bucket_count: BUCKETS } }],
          }),
        },
        { signal },
      ),
    { staleTime: 30_000, enabled: hasValues(path) },
  );
  if (!hasValues(path)) return <p>Only objects, empty arrays or null: no values to count.</p>;
  if (error !== null) return <ErrorMessage error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading label={`Counting the values of ${name}`} />;
  const facet = data.facets?.[0];
  const stats = data.stats?.[0];
  return (
    <div className={styles.distributions}>
      {facet !== undefined && (
        <div className={styles.distribution}>
          <p className={styles.summary}>
            {facet.values.length < facet.distinct_count
              ? `The ${facet.values.length} most frequent of ${formatCount(facet.distinct_count)} values`
              : 'All values'}
            {facet.missing_count > 0 && `; ${formatCount(facet.missing_count)} vectors have none`}
          </p>
          <ValueBars label={`Most frequent values of ${name}`} values={facet.values} />
        </div>
      )}
      {stats?.histogram !== undefined && (
        <div className={styles.distribution}>
          <p className={styles.summary}>
            {formatCount(stats.count)} numbers
            {stats.mean !== undefined && `, mean ${formatScore(stats.mean)}`}
          </p>
          <HistogramBars
            label={`Histogram of the numbers at ${name}, from ${formatNumber(stats.min!)} to ${formatNumber(stats.max!)}`}
            buckets={stats.histogram.buckets}
          />
        </div>
      )}
    </div>
  );
}
