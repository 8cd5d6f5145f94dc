// Compares the metadata of a vector and its match side by side.

import { EqualNot } from 'lucide-react';
import { fetchMetadata } from '../../api/by-ids.js';
import { useApi } from '../../api/queries.js';
import { formatScore } from '../../ui/format.js';
import { ErrorMessage } from '../../ui/states.js';
import { compareMetadata } from '../duplicates/compare-metadata.js';
import type { JoinMatch } from './join-matches.js';
import styles from './join-table.module.css';

interface JoinComparisonProps {
  readonly collections: { readonly left: string; readonly right: string };
  readonly match: JoinMatch;
}

export function JoinComparison({ collections, match }: JoinComparisonProps) {
  const { id, matchId, score, rank } = match;
  const { data, error, refetch } = useApi(
    ['collection', collections.left, 'compared', collections.right, id, matchId],
    async (client, signal) => {
      const [left, right] = await Promise.all([
        fetchMetadata(client.collection(collections.left), [id], { signal }),
        fetchMetadata(client.collection(collections.right), [matchId], { signal }),
      ]);
      return compareMetadata([left.get(id) ?? {}, right.get(matchId) ?? {}]);
    },
    { staleTime: 60_000, placeholderData: (before) => before },
  );
  return (
    <section className={styles.comparison} aria-label="The chosen match">
      <p className={styles.note}>
        Match {rank}, score {formatScore(score)}
      </p>
      {error !== null && <ErrorMessage error={error} onRetry={refetch} />}
      <table>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">
              <bdi>{id}</bdi>
            </th>
            <th scope="col">
              <bdi>{matchId}</bdi>
            </th>
          </tr>
        </thead>
        <tbody>
          {(data ?? []).map(({ path, values, isDifferent }) => (
            <tr key={path}>
              <th scope="row">
                <bdi>{path}</bdi>
                {isDifferent && (
                  <EqualNot size={13} className={styles.differs} aria-label="differs" />
                )}
              </th>
              {['left', 'right'].map((side, at) => (
                <td key={side} dir="auto">
                  {values[at] ?? <span className={styles.note}>absent</span>}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
