// The member to keep in each group, by the rule and the user's choices.

import type { CollectionRecord } from '@sagitta/client';
import { useMemo } from 'react';
import { fetchMetadata } from '../../api/by-ids.js';
import { useApi } from '../../api/queries.js';
import { useStore } from '../../api/store.js';
import { type DuplicateResult, keepChoicesOf, keepRuleOf } from './duplicate-search.js';
import { keptIn, type MetadataById } from './keep-rules.js';
import type { SimilarGroup } from './similar-pairs.js';

/** The groups that a search found, for a threshold and after some deletions. */
export interface Found {
  readonly result: DuplicateResult;
  readonly version: number;
  readonly threshold: number;
  readonly groups: readonly SimilarGroup[];
}

/** The id of the member to keep; null to keep all, undefined until the rule's metadata has arrived. */
export type KeptOf = (group: SimilarGroup) => string | null | undefined;

interface Keeping {
  readonly keptOf: KeptOf;
  readonly isReady: boolean;
  readonly error: Error | null;
}

const NO_METADATA: MetadataById = new Map();

export function useKeeping({ id }: CollectionRecord, found: Found): Keeping {
  const { result, version, threshold, groups } = found;
  const rule = useStore(keepRuleOf(id));
  const choices = useStore(keepChoicesOf(id));
  const needsMetadata = 'path' in rule;
  const ids = () => groups.flatMap(({ members }) => members.map((member) => member.id));
  const { data, error } = useApi(
    ['collection', id, 'duplicates', result.request, result.pairs.pairCount, version, threshold],
    (client, signal) => fetchMetadata(client.collection(id), ids(), { signal }),
    // While the search runs, the groups change too often to read all their metadata again.
    { enabled: needsMetadata && result.ending !== undefined, staleTime: 60_000 },
  );
  const isReady = !needsMetadata || data !== undefined;
  const keptOf = useMemo<KeptOf>(
    () => (group) => (isReady ? keptIn(group, rule, choices, data ?? NO_METADATA) : undefined),
    [isReady, rule, choices, data],
  );
  return { keptOf, isReady, error };
}
