// The fields for the ranking of a query: a stored vector, numbers, words, or examples.

import { Tab, TabList, TabPanel, TabProvider } from '@ariakit/react';
import type { CollectionRecord } from '@sagitta/client';
import { X } from 'lucide-react';
import { useState } from 'react';
import { Field, optionsOf, SelectField, TextAreaField } from '../../ui/field.js';
import { SuggestInput } from '../../ui/suggest-input.js';
import { useIdSuggestions } from '../filter/use-suggestions.js';
import { parseVector } from './parse-vector.js';
import styles from './query.module.css';
import {
  type DraftChange,
  type QueryBy,
  type QueryDraft,
  RANKINGS,
  rankingOf,
  STRATEGIES,
} from './query-draft.js';
import { possibleRankings, searchedVector } from './query-request.js';

interface RankingFieldsProps {
  readonly collection: CollectionRecord;
  readonly draft: QueryDraft;
  readonly onChange: (part: DraftChange) => void;
}

export function RankingFields(props: RankingFieldsProps) {
  const { collection, draft, onChange } = props;
  return (
    <TabProvider
      selectedId={rankingOf(draft)}
      setSelectedId={(by) => by && onChange({ by: by as QueryBy })}
    >
      <TabList className={styles.tabs} aria-label="What the query ranks by">
        {possibleRankings(collection).map((by) => (
          <Tab key={by} id={by} className={styles.tab}>
            {RANKINGS[by]}
          </Tab>
        ))}
      </TabList>
      <TabPanel tabId={rankingOf(draft)} focusable={false} className={styles.fields}>
        <Fields {...props} />
      </TabPanel>
    </TabProvider>
  );
}

function Fields({ collection, draft, onChange }: RankingFieldsProps) {
  switch (rankingOf(draft)) {
    case 'id':
      return (
        <IdField
          collection={collection}
          id={draft.id ?? ''}
          onChange={(id) => onChange({ by: 'id', id })}
        />
      );
    case 'vector':
      return <NumbersField collection={collection} draft={draft} onChange={onChange} />;
    case 'text':
      return (
        <TextAreaField
          label="Words"
          hint={`Searched in ${collection.text?.fields.join(', ')}.`}
          rows={2}
          dir="auto"
          className={styles.words}
          value={draft.words ?? ''}
          onChange={(words) => onChange({ by: 'text', words })}
        />
      );
    case 'examples':
      return <ExampleFields collection={collection} draft={draft} onChange={onChange} />;
  }
}

interface IdFieldProps {
  readonly collection: CollectionRecord;
  readonly id: string;
  readonly onChange: (id: string) => void;
}

function IdField({ collection, id, onChange }: IdFieldProps) {
  const [isActive, setActive] = useState(false);
  const suggestions = useIdSuggestions(collection.id, id, isActive);
  return (
    <Field label="Id of a stored vector" hint="It is excluded from its own result.">
      {(control) => (
        <SuggestInput
          id={control.id}
          describedBy={control['aria-describedby']}
          value={id}
          suggestions={suggestions.filter(({ value }) => value !== id)}
          onChange={onChange}
          onFocusChange={setActive}
        />
      )}
    </Field>
  );
}

function NumbersField({ collection, draft, onChange }: RankingFieldsProps) {
  const dimension = searchedVector(collection, draft.using)?.dimension ?? 0;
  const text = draft.vector ?? '';
  const { problem } = parseVector(text, dimension);
  const isEmpty = text.trim() === '';
  return (
    <TextAreaField
      label="Numbers"
      error={isEmpty ? undefined : problem}
      hint={
        isEmpty
          ? `${dimension} numbers: a JSON array, base64 of float32, or numbers with any separators.`
          : `Found all ${dimension} numbers.`
      }
      rows={5}
      value={text}
      onChange={(vector) => onChange({ by: 'vector', vector })}
    />
  );
}

function ExampleFields({ collection, draft, onChange }: RankingFieldsProps) {
  return (
    <>
      <ExampleList
        label="Near to"
        collection={collection}
        ids={draft.positive ?? []}
        onChange={(positive) => onChange({ by: 'examples', positive })}
      />
      <ExampleList
        label="Not near to"
        collection={collection}
        ids={draft.negative ?? []}
        onChange={(negative) => onChange({ by: 'examples', negative })}
      />
      <SelectField
        label="Compared with"
        value={draft.strategy ?? 'average_vector'}
        options={optionsOf(STRATEGIES)}
        onChange={(strategy) => onChange({ by: 'examples', strategy })}
      />
    </>
  );
}

interface ExampleListProps {
  readonly label: string;
  readonly collection: CollectionRecord;
  readonly ids: readonly string[];
  readonly onChange: (ids: readonly string[]) => void;
}

function ExampleList({ label, collection, ids, onChange }: ExampleListProps) {
  const [typed, setTyped] = useState('');
  const [isActive, setActive] = useState(false);
  const suggestions = useIdSuggestions(collection.id, typed, isActive);
  const add = (id: string) => {
    setTyped('');
    if (id !== '' && !ids.includes(id)) onChange([...ids, id]);
  };
  return (
    <Field label={label}>
      {(control) => (
        <div className={styles.examples}>
          {ids.map((id) => (
            <button
              key={id}
              type="button"
              className={styles.example}
              aria-label={`Remove ${id}`}
              onClick={() => onChange(ids.filter((other) => other !== id))}
            >
              <bdi>{id}</bdi>
              <X size={13} aria-hidden />
            </button>
          ))}
          <SuggestInput
            id={control.id}
            placeholder="add an id"
            value={typed}
            suggestions={suggestions.filter(({ value }) => !ids.includes(value))}
            onChange={setTyped}
            onChoose={add}
            onFocusChange={(hasFocus) => {
              setActive(hasFocus);
              if (!hasFocus) add(typed);
            }}
            onKeyDown={(event) => {
              const isChoosing = event.currentTarget.getAttribute('aria-activedescendant') !== null;
              if (event.key === 'Enter' && !event.ctrlKey && !isChoosing) add(typed);
            }}
          />
        </div>
      )}
    </Field>
  );
}
