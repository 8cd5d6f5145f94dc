// The fields of a ranking: its examples, the vector that it searches, how it compares, and, for further rankings of a
// fusion and for a first stage, its kind and its input.

import type { CollectionRecord } from '@sagitta/client';
import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import { UNNAMED } from '../../../../../src/common/vectors.js';
import { Button, IconButton } from '../../ui/button.js';
import { Field, FieldGroup, optionsOf, SelectField, TextAreaField } from '../../ui/field.js';
import { NumberField } from '../../ui/number-field.js';
import { SuggestInput } from '../../ui/suggest-input.js';
import { FilterEditor } from '../filter/filter-editor.js';
import { MetricField, VectorSelect } from '../vector-fields.js';
import styles from './query.module.css';
import {
  type Change,
  changed,
  EXAMPLES_MAX,
  type QueryBy,
  RANKINGS,
  type Ranking,
  STRATEGIES,
} from './query-draft.js';
import { STAGE_LIMIT_DEFAULT } from './query-request.js';
import { possibleRankings, searchedVector, vectorsFor } from './searchable.js';
import { useRowSuggestions } from './use-rows.js';

interface RankingFieldsProps {
  readonly collection: CollectionRecord;
  readonly ranking: Ranking;
  readonly by: QueryBy;
  /** What the server refused, by the name of the member. */
  readonly errorOf: (member: string) => string | undefined;
  readonly onChange: (ranking: Ranking) => void;
}

/** The examples of a ranking by examples; nothing for other rankings. */
export function ExampleFields({ collection, ranking, by, onChange }: RankingFieldsProps) {
  if (by === 'discover') {
    return <PairFields collection={collection} ranking={ranking} onChange={onChange} />;
  }
  if (by !== 'recommend') return null;
  const { recommend = {} } = ranking;
  const change = (part: Change<NonNullable<Ranking['recommend']>>) =>
    onChange(changed(ranking, { recommend: changed(recommend, part) }));
  const listOf = (ids: readonly string[]) => (ids.length === 0 ? undefined : ids);
  return (
    <>
      <ExampleList
        label="Near to"
        collection={collection}
        ids={(recommend.positive ?? []) as readonly string[]}
        onChange={(ids) => change({ positive: listOf(ids) })}
      />
      <ExampleList
        label="Not near to"
        collection={collection}
        ids={(recommend.negative ?? []) as readonly string[]}
        onChange={(ids) => change({ negative: listOf(ids) })}
      />
      <SelectField
        label="Compared with"
        value={recommend.strategy ?? 'average_vector'}
        options={optionsOf(STRATEGIES)}
        onChange={(strategy) => change({ strategy })}
      />
    </>
  );
}

interface PairFieldsProps {
  readonly collection: CollectionRecord;
  readonly ranking: Ranking;
  readonly onChange: (ranking: Ranking) => void;
}

/** A target, and pairs of which matches should be nearer to the first. */
function PairFields({ collection, ranking, onChange }: PairFieldsProps) {
  const { target, context = [] } = ranking.discover ?? {};
  const change = (part: Change<NonNullable<Ranking['discover']>>) =>
    onChange(changed(ranking, { discover: changed(ranking.discover ?? {}, part) }));
  const setPair = (at: number, part: { positive?: string; negative?: string }) =>
    change({ context: context.map((pair, i) => (i === at ? { ...pair, ...part } : pair)) });
  return (
    <>
      <IdField
        label="Near to (optional)"
        collection={collection}
        id={(target ?? '') as string}
        onChange={(id) => change({ target: id === '' ? undefined : id })}
      />
      {context.map((pair, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: pairs have no identity and may be equal
        <FieldGroup key={at} label={`Pair ${at + 1}`}>
          <div className={styles.pair}>
            <IdField
              label="Nearer to"
              collection={collection}
              id={pair.positive as string}
              onChange={(positive) => setPair(at, { positive })}
            />
            <IdField
              label="than to"
              collection={collection}
              id={pair.negative as string}
              onChange={(negative) => setPair(at, { negative })}
            />
            <IconButton
              icon={X}
              label={`Remove pair ${at + 1}`}
              onClick={() => change({ context: context.filter((_, i) => i !== at) })}
            />
          </div>
        </FieldGroup>
      ))}
      <div>
        <Button
          icon={Plus}
          disabled={context.length >= EXAMPLES_MAX}
          onClick={() => change({ context: [...context, { positive: '', negative: '' }] })}
        >
          Pair
        </Button>
      </div>
    </>
  );
}

interface IdFieldProps {
  readonly label: string;
  readonly collection: CollectionRecord;
  readonly id: string;
  readonly onChange: (id: string) => void;
}

function IdField({ label, collection, id, onChange }: IdFieldProps) {
  const [isActive, setActive] = useState(false);
  const suggestions = useRowSuggestions(collection, id, isActive);
  return (
    <Field label={label}>
      {(control) => (
        <SuggestInput
          id={control.id}
          placeholder="an id or a title"
          value={id}
          suggestions={suggestions.filter(({ value }) => value !== id)}
          onChange={onChange}
          onFocusChange={setActive}
        />
      )}
    </Field>
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
  const suggestions = useRowSuggestions(collection, typed, isActive);
  const add = (id: string) => {
    setTyped('');
    if (id !== '' && !ids.includes(id)) onChange([...ids, id]);
  };
  return (
    <Field label={label}>
      {(control) => (
        <div className={styles.chips}>
          <Chips ids={ids} onChange={onChange} />
          <SuggestInput
            id={control.id}
            className={styles.chipInput}
            placeholder="add an id or a title"
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

interface ChipsProps {
  readonly ids: readonly string[];
  readonly onChange: (ids: readonly string[]) => void;
}

/** Texts that are removed by a click. */
export function Chips({ ids, onChange }: ChipsProps) {
  return ids.map((id) => (
    <button
      key={id}
      type="button"
      className={styles.chip}
      aria-label={`Remove ${id}`}
      onClick={() => onChange(ids.filter((other) => other !== id))}
    >
      <bdi>{id}</bdi>
      <X size={13} aria-hidden />
    </button>
  ));
}

const MATCHES = { any: 'Any of the words', all: 'All of the words' } as const;

/** The vector that the ranking searches, the metric, and how words match, as far as these apply. */
export function ComparisonFields({
  collection,
  ranking,
  by,
  errorOf,
  onChange,
}: RankingFieldsProps) {
  const vectors = vectorsFor(collection, by);
  const searched = searchedVector(collection, by, ranking.using);
  const change = (part: Change<Ranking>) => onChange(changed(ranking, part));
  return (
    <div className={styles.options}>
      {vectors.length > 1 && (
        <VectorSelect
          label="Vector to search"
          vectors={vectors}
          using={ranking.using ?? vectors[0]?.name ?? UNNAMED}
          onChange={(name) => change({ using: name === UNNAMED ? undefined : name })}
        />
      )}
      {searched !== undefined && (
        <MetricField
          own={searched.metric}
          metric={ranking.metric ?? searched.metric}
          error={errorOf('metric')}
          onChange={(metric) => change({ metric: metric === searched.metric ? undefined : metric })}
        />
      )}
      {(by === 'text' || by === 'hybrid') && (
        <SelectField
          label="Must contain"
          value={ranking.match ?? 'any'}
          options={optionsOf(MATCHES)}
          onChange={(match) => change({ match: match === 'any' ? undefined : match })}
        />
      )}
    </div>
  );
}

interface PartFieldsProps extends Omit<RankingFieldsProps, 'by'> {
  readonly label: string;
  /** Names the draft of its filter. */
  readonly draftKey: string;
  /** Whether the ranking is a part of a fusion, with a weight. */
  readonly hasWeight: boolean;
  readonly onRemove: () => void;
}

/** A further ranking: a part of a fusion, or the first stage. */
export function PartFields(props: PartFieldsProps) {
  const { collection, ranking, label, draftKey, hasWeight, errorOf, onChange, onRemove } = props;
  const by = ranking.by ?? 'id';
  const change = (part: Change<Ranking>) => onChange(changed(ranking, part));
  const kinds = possibleRankings(collection).filter((kind) => !hasWeight || kind !== 'hybrid');
  return (
    <fieldset className={styles.part}>
      <legend className="visually-hidden">{label}</legend>
      <div className={styles.partHeader}>
        <SelectField
          label={label}
          value={by}
          options={kinds.map((value) => ({ value, label: RANKINGS[value] }))}
          onChange={(next) => change({ by: next, using: undefined, metric: undefined })}
        />
        <IconButton icon={X} label={`Remove: ${label}`} onClick={onRemove} />
      </div>
      <PartInput collection={collection} ranking={ranking} by={by} onChange={onChange} />
      <ExampleFields {...props} by={by} />
      <ComparisonFields {...props} by={by} />
      <div className={styles.options}>
        {hasWeight && (
          <NumberField
            label="Weight"
            value={ranking.weight}
            placeholder="1"
            error={errorOf('weight')}
            onChange={(weight) => change({ weight })}
          />
        )}
        <NumberField
          label="Best vectors only"
          value={ranking.limit}
          placeholder={hasWeight ? 'all' : String(STAGE_LIMIT_DEFAULT)}
          error={errorOf('limit')}
          onChange={(limit) => change({ limit })}
        />
      </div>
      <FilterEditor
        collection={collection}
        value={ranking.filter}
        onChange={(filter) => change({ filter })}
        draftKey={draftKey}
      />
    </fieldset>
  );
}

function PartInput({ collection, ranking, by, onChange }: Omit<RankingFieldsProps, 'errorOf'>) {
  const change = (input: string) => onChange({ ...ranking, input });
  if (by === 'recommend' || by === 'discover') return null;
  if (by === 'id') {
    return <IdField label="Id" collection={collection} id={ranking.input} onChange={change} />;
  }
  return (
    <TextAreaField
      label={by === 'vector' || by === 'multi_vector' || by === 'sparse' ? 'Numbers' : 'Words'}
      rows={2}
      dir="auto"
      value={ranking.input}
      onChange={change}
    />
  );
}
