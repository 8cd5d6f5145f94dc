// The result of a duplicate search: the groups for the form's threshold, and a note if the form's settings
// have changed since the search.

import type { CollectionRecord } from '@sagitta/client';
import { useDeferredValue, useMemo } from 'react';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { useStore } from '../../api/store.js';
import { formatCount, formatScore, pluralize } from '../../ui/format.js';
import { Empty, ErrorMessage } from '../../ui/states.js';
import {
  type DuplicateResult,
  searchDraftOf,
  searchSettings,
  searchStateOf,
} from './duplicate-search.js';
import styles from './duplicates.module.css';
import { GroupActions } from './group-actions.js';
import type { SimilarGroup } from './similar-pairs.js';

interface CollectionProps {
  readonly collection: CollectionRecord;
}

export function DuplicateGroups({ collection }: CollectionProps) {
  const state = useStore(searchStateOf(collection.id));
  if (state.kind === 'failed') return <ErrorMessage error={state.error} />;
  if (state.kind !== 'done') return null;
  return <FoundGroups collection={collection} result={state.result} version={state.version} />;
}

interface FoundGroupsProps extends CollectionProps {
  readonly result: DuplicateResult;
  readonly version: number;
}

function FoundGroups({ collection, result, version }: FoundGroupsProps) {
  const settings = searchSettings(collection, useStore(searchDraftOf(collection.id)));
  const { request, pairs } = result;
  // The pairs suffice for a higher threshold; any other change needs a new search.
  const threshold = useDeferredValue(
    Math.max(settings.threshold, request.threshold) || request.threshold,
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: the pairs change with the version
  const groups = useMemo(() => pairs.groups(threshold), [pairs, version, threshold]);
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
  complete: '',
  stopped: ' The search was stopped: some vectors were not compared.',
  full: ' The search reached the limit of pairs: choose a higher score to compare all vectors.',
};

function Summary({ result, groups, threshold, isStale }: SummaryProps) {
  const memberCount = groups.reduce((sum, { members }) => sum + members.length, 0);
  const compared = `${pluralize(result.pairs.rowCount, 'vector')} compared, minimum score ${formatScore(threshold)}.${ENDINGS[result.ending]}`;
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
      <h2>
        {pluralize(groups.length, 'group')} of {formatCount(memberCount)} vectors
      </h2>
      <p>{compared}</p>
      {isStale && <p>The settings have changed since. Search again to apply them.</p>}
    </div>
  );
}
