// The form of a search for duplicates.

import type { CollectionRecord } from '@sagitta/client';
import { useMembers, useStore } from '../../api/store.js';
import { pluralize } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { FilterEditor } from '../filter/filter-editor.js';
import { MetricField, VectorSelect } from '../vector-fields.js';
import {
  type SearchDraft,
  searchDraftOf,
  searchSettings,
  searchStateOf,
  useDuplicateSearch,
} from './duplicate-search.js';
import styles from './duplicates.module.css';
import { SearchActions } from './search-actions.js';
import { ThresholdField } from './threshold-field.js';

export function SearchForm({ collection }: { readonly collection: CollectionRecord }) {
  const store = searchDraftOf(collection.id);
  const [draft, change] = useMembers(store);
  const state = useStore(searchStateOf(collection.id));
  const { start, stop } = useDuplicateSearch(collection);
  const settings = searchSettings(collection, draft);
  const isReady = Number.isFinite(settings.threshold);
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
          if (isReady) void start(settings);
        }}
      >
        <div className={styles.fields}>
          <VectorSelect
            vectors={settings.vectors}
            using={settings.using}
            onChange={(using) => change({ using })}
          />
          <MetricField
            own={settings.vectors.find(({ name }) => name === settings.using)?.metric}
            metric={settings.metric}
            // A threshold has no meaning for a different metric.
            onChange={(metric) => store.set({ ...withoutThreshold(draft), metric })}
          />
          <ThresholdField
            metric={settings.metric}
            text={settings.thresholdText}
            threshold={settings.threshold}
            onChange={(thresholdText) => change({ thresholdText })}
          />
        </div>
        <SearchActions
          action="Find duplicates"
          isReady={isReady}
          progress={
            state.kind === 'running'
              ? {
                  rowCount: state.progress.rowCount,
                  found: pluralize(state.progress.pairCount, 'pair'),
                }
              : undefined
          }
          total={collection.vector_count}
          onStop={stop}
        />
      </form>
    </Panel>
  );
}

function withoutThreshold({ thresholdText: _, ...rest }: SearchDraft): SearchDraft {
  return rest;
}
