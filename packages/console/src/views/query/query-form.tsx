// The form of one query.

import type { CollectionRecord } from '@sagitta/client';
import { UNNAMED } from '../../../../../src/common/vectors.js';
import { TextField } from '../../ui/field.js';
import { FilterEditor } from '../filter/filter-editor.js';
import { MetricField, VectorSelect } from '../vector-fields.js';
import styles from './query.module.css';
import { changedDraft, type DraftChange, type QueryDraft, rankingOf } from './query-draft.js';
import { K_DEFAULT, searchableVectors, searchedVector } from './query-request.js';
import { RankingFields } from './ranking-fields.js';

interface QueryFormProps {
  readonly collection: CollectionRecord;
  readonly draft: QueryDraft;
  readonly onChange: (draft: QueryDraft) => void;
  /** Distinguishes the two forms of a comparison. */
  readonly name: string;
}

export function QueryForm({ collection, draft, onChange, name }: QueryFormProps) {
  const change = (part: DraftChange) => onChange(changedDraft(draft, part));
  return (
    <div className={styles.form}>
      <RankingFields collection={collection} draft={draft} onChange={change} />
      <Options collection={collection} draft={draft} onChange={change} />
      <FilterEditor
        collection={collection}
        value={draft.filter}
        onChange={(filter) => change({ filter })}
        draftKey={`query ${name}`}
      />
    </div>
  );
}

interface OptionsProps {
  readonly collection: CollectionRecord;
  readonly draft: QueryDraft;
  readonly onChange: (part: DraftChange) => void;
}

function Options({ collection, draft, onChange }: OptionsProps) {
  const isByWords = rankingOf(draft) === 'text';
  const searched = searchedVector(collection, draft.using);
  return (
    <div className={styles.options}>
      {!isByWords && (
        <>
          <VectorSelect
            label="Vector to search"
            vectors={searchableVectors(collection)}
            using={searched?.name ?? UNNAMED}
            onChange={(name) => onChange({ using: name === UNNAMED ? undefined : name })}
          />
          <MetricField
            own={searched?.metric}
            metric={draft.metric ?? searched?.metric ?? 'cosine'}
            onChange={(metric) =>
              onChange({ metric: metric === searched?.metric ? undefined : metric })
            }
          />
        </>
      )}
      <NumberField
        label="Per page (k)"
        value={draft.k}
        placeholder={String(K_DEFAULT)}
        onChange={(k) => onChange({ k })}
      />
      <NumberField
        label="Minimum score"
        value={draft.threshold}
        placeholder="any"
        onChange={(threshold) => onChange({ threshold })}
      />
    </div>
  );
}

interface NumberFieldProps {
  readonly label: string;
  readonly value: number | undefined;
  readonly placeholder: string;
  readonly onChange: (value: number | undefined) => void;
}

function NumberField({ label, value, placeholder, onChange }: NumberFieldProps) {
  return (
    <TextField
      label={label}
      type="number"
      step="any"
      placeholder={placeholder}
      value={value ?? ''}
      onChange={(text) => onChange(text === '' ? undefined : Number(text))}
    />
  );
}
