// The join of a collection with another one: its form and its results.

import type { CollectionRecord } from '@sagitta/client';
import { type DenseVector, denseVectors } from '@sagitta/client';
import { useCollections } from '../../api/queries.js';
import { useMembers, useStore } from '../../api/store.js';
import { SelectField, TextField } from '../../ui/field.js';
import { pluralize } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { Empty, ErrorMessage, Loading } from '../../ui/states.js';
import styles from '../duplicates/duplicates.module.css';
import { SearchActions } from '../duplicates/search-actions.js';
import { ThresholdField } from '../duplicates/threshold-field.js';
import { FilterEditor } from '../filter/filter-editor.js';
import { MetricField, VectorSelect } from '../vector-fields.js';
import { JoinResults } from './join-results.js';
import { joinDraftOf, joinStateOf, useJoin } from './join-search.js';
import {
  type JoinDraft,
  joinableCollections,
  joinRequest,
  joinSettings,
  vectorsMatching,
} from './join-settings.js';

interface JoinPanelProps {
  readonly collection: CollectionRecord;
}

export function JoinPanel({ collection }: JoinPanelProps) {
  const [draft, change] = useMembers(joinDraftOf(collection.id));
  const { data: collections, error, refetch } = useCollections();
  if (collections === undefined) {
    return error === null ? <Loading /> : <ErrorMessage error={error} onRetry={refetch} />;
  }
  const vectors = denseVectors(collection);
  const using = vectors.find(({ name }) => name === draft.using) ?? vectors[0]!;
  const others = joinableCollections(collections, collection, using);
  const other = others.find(({ id }) => id === draft.with) ?? others[0];
  if (other === undefined && vectors.length === 1) {
    return (
      <Empty title="No collection to join with">
        <p>No other collection you can read has vectors of {using.dimension} dimensions.</p>
        <a href="#/import">Import one</a>
      </Empty>
    );
  }
  return (
    <>
      <Panel>
        <FilterEditor
          collection={collection}
          value={draft.filter}
          draftKey="join"
          onChange={(filter) => change({ filter })}
        />
        <JoinForm collection={collection} using={using} others={others} other={other} />
      </Panel>
      <JoinResults collection={collection} />
    </>
  );
}

interface JoinFormProps extends JoinPanelProps {
  readonly using: DenseVector;
  readonly others: readonly CollectionRecord[];
  /** Undefined if no other collection has vectors of the same dimension as `using`. */
  readonly other: CollectionRecord | undefined;
}

function JoinForm({ collection, using, others, other }: JoinFormProps) {
  const [draft, change] = useMembers(joinDraftOf(collection.id));
  const state = useStore(joinStateOf(collection.id));
  const { start, stop } = useJoin(collection);
  const settings = other && joinSettings(using, other, draft);
  const request = other && settings && joinRequest(other, settings, draft);
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (request !== undefined) void start(request);
      }}
    >
      <div className={styles.fields}>
        <VectorSelect
          vectors={denseVectors(collection)}
          using={using.name}
          onChange={(name) => change({ using: name })}
        />
        <SelectField
          label="Search in"
          error={
            other === undefined
              ? `No other collection has vectors of ${using.dimension} dimensions.`
              : undefined
          }
          value={other?.id ?? ''}
          options={others.map(({ id }) => ({ value: id, label: id }))}
          onChange={(id) => change({ with: id })}
        />
        {other !== undefined && settings !== undefined && (
          <>
            <VectorSelect
              label="Vector to search"
              vectors={vectorsMatching(other, using)}
              using={settings.withUsing.name}
              onChange={(withUsing) => change({ withUsing })}
            />
            <MetricField
              own={settings.withUsing.metric}
              metric={settings.metric}
              onChange={(metric) => change({ metric })}
            />
            <TopKField text={draft.topKText ?? '1'} {...settings} onChange={change} />
            <ThresholdField
              metric={settings.metric}
              text={draft.thresholdText ?? ''}
              threshold={settings.threshold ?? Number.NaN}
              isOptional
              onChange={(thresholdText) => change({ thresholdText })}
            />
          </>
        )}
      </div>
      <SearchActions
        action="Join"
        isReady={request !== undefined}
        running={
          state.kind === 'running'
            ? {
                progress: state.progress,
                found: pluralize(state.matchCount, 'match', 'matches'),
              }
            : undefined
        }
        onStop={stop}
      />
    </form>
  );
}

interface TopKFieldProps {
  readonly text: string;
  readonly topK: number | undefined;
  readonly threshold: number | undefined;
  readonly onChange: (part: JoinDraft) => void;
}

function TopKField({ text, topK, threshold, onChange }: TopKFieldProps) {
  const isMissing = topK === undefined && threshold === undefined;
  const error = isMissing
    ? 'Enter a number of matches, a minimum score, or both.'
    : Number.isNaN(topK)
      ? 'Expected a whole number above 0.'
      : undefined;
  return (
    <TextField
      label="Matches per vector"
      error={error}
      hint="Leave empty for all matches with the score."
      inputMode="numeric"
      value={text}
      onChange={(topKText) => onChange({ topKText })}
    />
  );
}
