// The settings of a search for duplicates, with a threshold from a sample of the collection until the user chooses one.

import type { CollectionRecord } from '@sagitta/client';
import { useMemo } from 'react';
import { useStore } from '../../api/store.js';
import { type SearchSettings, searchDraftOf, searchSettings } from './duplicate-search.js';
import { type ScoreSample, type SuggestedThreshold, suggestThreshold } from './score-sample.js';
import { useScoreSample } from './use-score-sample.js';

interface SampledSettings {
  readonly settings: SearchSettings;
  /** Undefined until it has been read. */
  readonly sample: ScoreSample | undefined;
  /** Undefined also if no vector of the sample has a neighbour. */
  readonly suggested: SuggestedThreshold | undefined;
  readonly isSampling: boolean;
  readonly error: Error | null;
}

export function useSearchSettings(collection: CollectionRecord): SampledSettings {
  const draft = useStore(searchDraftOf(collection.id));
  const chosen = searchSettings(collection, draft, undefined);
  const { data: sample, error } = useScoreSample(collection, chosen);
  const { metric } = chosen;
  const suggested = useMemo(() => sample && suggestThreshold(metric, sample), [metric, sample]);
  return {
    settings: searchSettings(collection, draft, suggested?.threshold),
    sample,
    suggested,
    isSampling: sample === undefined && error === null,
    error,
  };
}
