// The result of a duplicate search, also while it runs: the groups for the form's threshold, and a note if the form's
// settings have changed since the search.

import type { CollectionRecord } from '@sagitta/client';
import { useDeferredValue, useMemo } from 'react';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { useStore } from '../../api/store.js';
import { formatCount, formatScore, pluralize } from '../../ui/format.js';
import { Empty, ErrorMessage } from '../../ui/states.js';
import { type DuplicateResult, groupOrderOf, searchStateOf } from './duplicate-search.js';
import styles from './duplicates.module.css';
import { GroupActions } from './group-actions.js';
import type { SimilarGroup } from './similar-pairs.js';
import { useSearchSettings } from './use-search-settings.js';

interface CollectionProps {
  readonly collection: CollectionRecord;
}

export function DuplicateGroups({ collection }: CollectionProps) {
  const state = useStore(searchStateOf(collection.id));
  if (state.kind === 'failed') return <ErrorMessage error={state.error} />;
  if (state.kind === 'none') return null;
  return <FoundGroups collection={collection} result={state.result} version={state.version} />;
}

interface FoundGroupsProps extends CollectionProps {
  readonly result: DuplicateResult;
  readonly version: number;
}

function FoundGroups({ collection, result, version }: FoundGroupsProps) {
  const { settings } = useSearchSettings(collection);
  const order = useStore(groupOrderOf(collection.id));
  const { request, pairs } = result;
  // The pairs suffice for a higher threshold; any other change needs a new search.
  const threshold = useDeferredValue(
    Math.max(settings.threshold, request.threshold) || request.threshold,
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: the pairs change with the version
  const groups = useMemo(() => pairs.groups(threshold, order), [pairs, version, threshold, order]);
  const isStale =
    settings.metric !== request.metric ||
    settings.using !== request.using ||
    stringifyExactJson(settings.filter) !== stringifyExactJson(request.filter) ||
    settings.threshold < request.threshold;
  return (
    <>
      <Summary result={result} groups={groups} threshold={threshold} isStale={isStale} />
      {groups.length > 0 && (
        <GroupActions collection={collection} found={{ result, version, threshold, groups }} />
      )}
    </>
  );
}

interface SummaryProps {
  readonly result: DuplicateResult;
  readonly groups: readonly SimilarGroup[];
  readonly threshold: number;
  /** Whether the form's settings have changed since the search. */
  readonly isStale: boolean;
}

const ENDINGS = {
  // The progress of the search is in the form.
  running: '',
  complete: '',
  stopped: ' The search was stopped: some vectors were not compared.',
  full: ' The search reached the limit of pairs: choose a higher score to compare all vectors.',
};

function Summary({ result, groups, threshold, isStale }: SummaryProps) {
  const compared = `${pluralize(result.pairs.rowCount, 'vector')} compared, minimum score ${formatScore(threshold)}.${ENDINGS[result.ending ?? 'running']}`;
  if (result.ending === undefined) {
    return groups.length === 0 ? null : (
      <div className={styles.summary}>
        <h2>{countOf(groups)} so far</h2>
        <p>Groups of vectors that are still to be compared will follow below these.</p>
      </div>
    );
  }
  if (groups.length === 0) {
    return (
      <div role="status">
        <Empty title="No duplicates">
          <p>{compared}</p>
        </Empty>
      </div>
    );
  }
  return (
    <div className={styles.summary} role="status">
      <h2>{countOf(groups)}</h2>
      <p>{compared}</p>
      {isStale && <p>The settings have changed since. Search again to apply them.</p>}
    </div>
  );
}

function countOf(groups: readonly SimilarGroup[]): string {
  const memberCount = groups.reduce((sum, { members }) => sum + members.length, 0);
  return `${pluralize(groups.length, 'group')} of ${formatCount(memberCount)} vectors`;
}
