// The form of a search for duplicates.

import type { CollectionRecord } from '@sagitta/client';
import { useMembers, useStore } from '../../api/store.js';
import { pluralize } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { ErrorMessage } from '../../ui/states.js';
import { FilterEditor } from '../filter/filter-editor.js';
import { MetricField, VectorSelect } from '../vector-fields.js';
import {
  type SearchDraft,
  searchDraftOf,
  searchStateOf,
  useDuplicateSearch,
} from './duplicate-search.js';
import styles from './duplicates.module.css';
import { ScoreHistogram } from './score-histogram.js';
import { SearchActions } from './search-actions.js';
import { ThresholdField } from './threshold-field.js';
import { useSearchSettings } from './use-search-settings.js';

export function SearchForm({ collection }: { readonly collection: CollectionRecord }) {
  const store = searchDraftOf(collection.id);
  const [draft, change] = useMembers(store);
  const state = useStore(searchStateOf(collection.id));
  const { start, stop } = useDuplicateSearch(collection);
  const { settings, sample, suggested, isSampling, error } = useSearchSettings(collection);
  const { thresholdText, threshold } = settings;
  const isReady = Number.isFinite(threshold);
  return (
    <Panel>
      <FilterEditor
        collection={collection}
        value={draft.filter}
        draftKey="duplicates"
        onChange={(filter) => change({ filter })}
      />
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (!isReady) return;
          // A later suggestion must not change the threshold of the groups.
          change({ thresholdText });
          void start(settings);
        }}
      >
        <div className={styles.fields}>
          <VectorSelect
            vectors={settings.vectors}
            using={settings.using}
            onChange={(using) => store.set({ ...withoutThreshold(draft), using })}
          />
          <MetricField
            own={settings.vectors.find(({ name }) => name === settings.using)?.metric}
            metric={settings.metric}
            // A threshold has no meaning for a different metric.
            onChange={(metric) => store.set({ ...withoutThreshold(draft), metric })}
          />
          <ThresholdField
            metric={settings.metric}
            text={thresholdText}
            threshold={threshold}
            isOptional={isSampling}
            hasSlider={false}
            onChange={(text) => change({ thresholdText: text })}
          />
        </div>
        {isSampling && <HistogramSkeleton />}
        {error !== null && <ErrorMessage title="The scores could not be sampled" error={error} />}
        {sample !== undefined && suggested !== undefined && (
          <ScoreHistogram
            sample={sample}
            suggested={suggested}
            threshold={threshold}
            onChange={(score) => change({ thresholdText: String(score) })}
          />
        )}
        <SearchActions
          action="Find duplicates"
          isReady={isReady}
          running={
            state.kind === 'running'
              ? {
                  progress: state.progress,
                  found: pluralize(state.result.pairs.pairCount, 'pair'),
                }
              : undefined
          }
          onStop={stop}
        />
      </form>
    </Panel>
  );
}

/** In the place of the histogram, so that the page does not jump. */
function HistogramSkeleton() {
  return (
    <div className={styles.sampling} role="status">
      Sampling scores…
    </div>
  );
}

function withoutThreshold({ thresholdText: _, ...rest }: SearchDraft): SearchDraft {
  return rest;
}
