// The form of the search for duplicates.

import { Search, Square } from 'lucide-react';
import type { CollectionRecord } from '../../../client/client.js';
import { useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { pluralize } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { FilterEditor } from '../filter/filter-editor.js';
import { MetricField, VectorField } from '../vector-fields.js';
import {
  type SearchDraft,
  searchDraftOf,
  searchSettings,
  searchStateOf,
  useDuplicateSearch,
} from './duplicate-search.js';
import styles from './duplicates.module.css';
import { SearchProgress } from './search-progress.js';
import { ThresholdField } from './threshold-field.js';

export function SearchForm({ collection }: { readonly collection: CollectionRecord }) {
  const store = searchDraftOf(collection.id);
  const draft = useStore(store);
  const state = useStore(searchStateOf(collection.id));
  const { start, stop } = useDuplicateSearch(collection);
  const settings = searchSettings(collection, draft);
  const change = (part: SearchDraft) => store.set({ ...draft, ...part });
  const isReady = Number.isFinite(settings.threshold);
  return (
    <Panel>
      <FilterEditor
        collection={collection}
        value={draft.filter}
        draftKey="duplicates"
        onChange={(filter) => store.set({ ...store.get(), filter })}
      />
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) void start(settings);
        }}
      >
        <div className={styles.fields}>
          <VectorField
            vectors={settings.vectors}
            using={settings.using}
            onChange={(using) => change({ using })}
          />
          <MetricField
            own={settings.vectors.find(({ name }) => name === settings.using)?.metric}
            metric={settings.metric}
            // A threshold of one metric means nothing in another.
            onChange={(metric) => store.set({ ...withoutThreshold(draft), metric })}
          />
          <ThresholdField
            metric={settings.metric}
            text={settings.thresholdText}
            threshold={settings.threshold}
            onChange={(thresholdText) => change({ thresholdText })}
          />
        </div>
        <div className={styles.submit}>
          {state.kind === 'running' ? (
            <Button icon={Square} onClick={stop}>
              Stop
            </Button>
          ) : (
            <Button type="submit" kind="primary" icon={Search} disabled={!isReady}>
              Find duplicates
            </Button>
          )}
          {state.kind === 'running' && (
            <SearchProgress rowCount={state.progress.rowCount} total={collection.vector_count}>
              {pluralize(state.progress.pairCount, 'pair')}
            </SearchProgress>
          )}
        </div>
      </form>
    </Panel>
  );
}

function withoutThreshold({ thresholdText: _, ...rest }: SearchDraft): SearchDraft {
  return rest;
}
