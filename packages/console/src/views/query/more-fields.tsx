// What a query offers beside its ranking and its filter: figures, fusion, first stage, groups, facets, order, reply.

import type { CollectionRecord, FacetRequest, SortKey, StatsRequest } from '@sagitta/client';
import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import { Button, IconButton } from '../../ui/button.js';
import { Checkbox, Field, FieldGroup, optionsOf, SelectField } from '../../ui/field.js';
import { NumberField } from '../../ui/number-field.js';
import { SuggestInput } from '../../ui/suggest-input.js';
import { usePathSuggestions } from '../filter/use-suggestions.js';
import styles from './query.module.css';
import {
  type Change,
  changed,
  type FusionOptions,
  LIMIT_DEFAULT,
  type QueryBy,
  type QueryDraft,
  type QueryOptions,
  type Ranking,
} from './query-draft.js';
import { Chips, ComparisonFields, PartFields } from './ranking-fields.js';
import { possibleRankings } from './searchable.js';

interface MoreFieldsProps {
  readonly collection: CollectionRecord;
  readonly draft: QueryDraft;
  /** How the first ranking ranks. */
  readonly by: QueryBy;
  /** Distinguishes the two forms of a comparison. */
  readonly name: string;
  readonly errorOf: (pointer: string) => string | undefined;
  readonly onChange: (draft: QueryDraft) => void;
}

export function MoreFields(props: MoreFieldsProps) {
  const { collection, draft, by, errorOf, onChange } = props;
  const { options } = draft;
  const change = (part: Change<QueryOptions>) =>
    onChange({ ...draft, options: changed(options, part) });
  const [first, ...rest] = draft.rankings;
  return (
    <div className={styles.moreFields}>
      <ComparisonFields
        collection={collection}
        ranking={first!}
        by={by}
        errorOf={(member) => errorOf(`/${member}`)}
        onChange={(ranking) => onChange({ ...draft, rankings: [ranking, ...rest] })}
      />
      <div className={styles.options}>
        <NumberField
          label="Results"
          value={options.limit}
          placeholder={String(LIMIT_DEFAULT)}
          error={errorOf('/limit')}
          onChange={(limit) => change({ limit })}
        />
        <NumberField
          label="In all, at most"
          value={options.top_k}
          placeholder="all"
          error={errorOf('/top_k')}
          onChange={(top_k) => change({ top_k })}
        />
        <NumberField
          label="Minimum score"
          value={options.score_threshold}
          placeholder="any"
          error={errorOf('/score_threshold')}
          onChange={(score_threshold) => change({ score_threshold })}
        />
        <NumberField
          label="Skip"
          value={options.offset}
          placeholder="0"
          error={errorOf('/offset')}
          onChange={(offset) => change({ offset })}
        />
      </div>
      <FusionFields {...props} />
      <StageFields {...props} />
      <GroupFields {...props} change={change} />
      <OrderFields {...props} change={change} />
      <PathLists {...props} change={change} />
      <ReplyFields {...props} change={change} />
    </div>
  );
}

const FUSIONS = { rrf: 'Reciprocal ranks', weighted: 'Weighted scores' } as const;
const NORMALIZATIONS = { none: 'As they are', max: 'Relative to the best' } as const;

function FusionFields(props: MoreFieldsProps) {
  const { collection, draft, by, name, errorOf, onChange } = props;
  const { rankings } = draft;
  const setRanking = (at: number, ranking: Ranking) =>
    onChange({ ...draft, rankings: rankings.map((one, i) => (i === at ? ranking : one)) });
  const isFused = rankings.length > 1 || by === 'hybrid';
  const partOffset = by === 'hybrid' ? 1 : 0;
  return (
    <FieldGroup label="Combined rankings">
      {isFused && <CombinationFields {...props} />}
      {rankings.map(
        (ranking, at) =>
          at > 0 && (
            <PartFields
              // biome-ignore lint/suspicious/noArrayIndexKey: rankings have no identity and may be equal
              key={at}
              label={`Ranking ${at + 1}`}
              draftKey={`query ${name} ranking ${at}`}
              collection={collection}
              ranking={ranking}
              hasWeight
              errorOf={(member) => errorOf(`/fusion/parts/${at + partOffset}/${member}`)}
              onChange={(next) => setRanking(at, next)}
              onRemove={() => onChange({ ...draft, rankings: rankings.filter((_, i) => i !== at) })}
            />
          ),
      )}
      <div>
        <Button
          icon={Plus}
          onClick={() => onChange({ ...draft, rankings: [...rankings, newPart(collection)] })}
        >
          Ranking
        </Button>
      </div>
    </FieldGroup>
  );
}

/** How several rankings are combined, and the share of the first. */
function CombinationFields({ draft, by, errorOf, onChange }: MoreFieldsProps) {
  const { rankings, fusion } = draft;
  const [first, ...rest] = rankings;
  const setFirst = (ranking: Ranking) => onChange({ ...draft, rankings: [ranking, ...rest] });
  const change = (part: Change<FusionOptions>) =>
    onChange({ ...draft, fusion: changed(fusion, part) });
  return (
    <div className={styles.options}>
      <SelectField
        label="Combined by"
        value={fusion.kind ?? 'rrf'}
        options={optionsOf(FUSIONS)}
        onChange={(kind) => onChange({ ...draft, fusion: kind === 'rrf' ? {} : { kind } })}
      />
      {fusion.kind === 'weighted' ? (
        <SelectField
          label="Scores"
          value={fusion.normalize ?? 'none'}
          options={optionsOf(NORMALIZATIONS)}
          onChange={(normalize) => change({ normalize })}
        />
      ) : (
        <NumberField
          label="Rank constant"
          value={fusion.rank_constant}
          placeholder="60"
          error={errorOf('/fusion/rank_constant')}
          onChange={(rank_constant) => change({ rank_constant })}
        />
      )}
      <NumberField
        label={by === 'hybrid' ? 'Weight of words' : 'Weight of the first'}
        value={first!.weight}
        placeholder="1"
        error={errorOf('/fusion/parts/0/weight')}
        onChange={(weight) => setFirst(changed(first!, { weight }))}
      />
      <NumberField
        label="Best vectors only"
        value={first!.limit}
        placeholder="all"
        error={errorOf('/fusion/parts/0/limit')}
        onChange={(limit) => setFirst(changed(first!, { limit }))}
      />
      {by === 'hybrid' && (
        <NumberField
          label="Weight of meaning"
          value={first!.meaningWeight}
          placeholder="1"
          error={errorOf('/fusion/parts/1/weight')}
          onChange={(meaningWeight) => setFirst(changed(first!, { meaningWeight }))}
        />
      )}
    </div>
  );
}

/** A ranking of the first kind that is one part of a fusion. */
function newPart(collection: CollectionRecord): Ranking {
  const by = possibleRankings(collection).find((kind) => kind !== 'hybrid') ?? 'id';
  return { by, input: '' };
}

function StageFields({ collection, draft, name, errorOf, onChange }: MoreFieldsProps) {
  const { prefetch } = draft;
  const set = (next: Ranking | undefined) => onChange(changed(draft, { prefetch: next }));
  return (
    <FieldGroup label="First stage">
      {prefetch === undefined ? (
        <div>
          <Button icon={Plus} onClick={() => set(newPart(collection))}>
            Search only the best of another ranking
          </Button>
        </div>
      ) : (
        <PartFields
          label="Search only the best by"
          draftKey={`query ${name} first stage`}
          collection={collection}
          ranking={prefetch}
          hasWeight={false}
          errorOf={(member) => errorOf(`/prefetch/${member}`)}
          onChange={set}
          onRemove={() => set(undefined)}
        />
      )}
    </FieldGroup>
  );
}

interface OptionFieldsProps extends MoreFieldsProps {
  readonly change: (part: Change<QueryOptions>) => void;
}

function GroupFields({ collection, draft: { options }, errorOf, change }: OptionFieldsProps) {
  return (
    <div className={styles.options}>
      <PathField
        label="Group by"
        collection={collection}
        path={options.group_by ?? ''}
        error={errorOf('/group_by')}
        onChange={(path) =>
          change({
            group_by: path === '' ? undefined : path,
            group_size: path === '' ? undefined : options.group_size,
          })
        }
      />
      {options.group_by !== undefined && (
        <NumberField
          label="Matches per group"
          value={options.group_size}
          placeholder="1"
          error={errorOf('/group_size')}
          onChange={(group_size) => change({ group_size })}
        />
      )}
    </div>
  );
}

interface PathFieldProps {
  readonly label: string;
  readonly collection: CollectionRecord;
  readonly path: string;
  readonly error?: string | undefined;
  readonly onChange: (path: string) => void;
}

function PathField({ label, collection, path, error, onChange }: PathFieldProps) {
  const suggestions = usePathSuggestions(collection, path).filter(({ value }) => value !== path);
  return (
    <Field label={label} error={error}>
      {(control) => (
        <SuggestInput
          id={control.id}
          describedBy={control['aria-describedby']}
          isInvalid={error !== undefined}
          placeholder="a metadata path"
          value={path}
          suggestions={suggestions}
          onChange={onChange}
        />
      )}
    </Field>
  );
}

/** A query that sorts needs a bound: it sorts the nearest vectors. */
const SORTED_DEFAULT = 100;
const ORDERS = { asc: 'Ascending', desc: 'Descending' } as const;

function OrderFields({ collection, draft: { options }, errorOf, change }: OptionFieldsProps) {
  const { mmr, sort = [] } = options;
  const setSort = (next: readonly SortKey[]) =>
    change({
      sort: next.length === 0 ? undefined : next,
      top_k: next.length === 0 ? options.top_k : (options.top_k ?? SORTED_DEFAULT),
    });
  const setKey = (at: number, part: Partial<SortKey>) =>
    setSort(sort.map((key, i) => (i === at ? { ...key, ...part } : key)));
  return (
    <FieldGroup label="Order">
      <Checkbox
        label="Prefer matches that differ from each other"
        isChecked={mmr !== undefined}
        onChange={(isChecked) => change({ mmr: isChecked ? {} : undefined })}
      />
      {mmr !== undefined && (
        <div className={styles.options}>
          <NumberField
            label="Nearness, 0 to 1"
            value={mmr.lambda}
            placeholder="0.5"
            error={errorOf('/mmr/lambda')}
            onChange={(lambda) => change({ mmr: changed(mmr, { lambda }) })}
          />
          <NumberField
            label="Candidates"
            value={mmr.candidates}
            placeholder="100"
            error={errorOf('/mmr/candidates')}
            onChange={(candidates) => change({ mmr: changed(mmr, { candidates }) })}
          />
        </div>
      )}
      {sort.map(({ field, order = 'asc' }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: sort keys have no identity while they are typed
        <div key={at} className={styles.pair}>
          <PathField
            label={at === 0 ? 'Sort by' : 'then by'}
            collection={collection}
            path={field}
            error={errorOf(`/sort/${at}/field`)}
            onChange={(next) => setKey(at, { field: next })}
          />
          <SelectField
            label="Direction"
            value={order}
            options={optionsOf(ORDERS)}
            onChange={(next) => setKey(at, { order: next })}
          />
          <IconButton
            icon={X}
            label={`Remove the sort key ${at + 1}`}
            onClick={() => setSort(sort.filter((_, i) => i !== at))}
          />
        </div>
      ))}
      <div>
        <Button icon={Plus} onClick={() => setSort([...sort, { field: '' }])}>
          Sort key
        </Button>
      </div>
    </FieldGroup>
  );
}

function PathLists({ collection, draft: { options }, change }: OptionFieldsProps) {
  const { facets = [], stats = [] } = options;
  const listOf = <Item,>(list: readonly Item[]) => (list.length === 0 ? undefined : list);
  return (
    <>
      <PathList<FacetRequest>
        label="Count the values of (facets)"
        collection={collection}
        items={facets}
        // Values that are not selected stay visible, so that they can be selected instead.
        create={(path) => ({ path, ignore_own_filter: true })}
        onChange={(next) => change({ facets: listOf(next) })}
      />
      <PathList<StatsRequest>
        label="Summarize the numbers of"
        collection={collection}
        items={stats}
        create={(path) => ({ path })}
        onChange={(next) => change({ stats: listOf(next) })}
      />
    </>
  );
}

interface PathListProps<Item> {
  readonly label: string;
  readonly collection: CollectionRecord;
  readonly items: readonly Item[];
  readonly create: (path: string) => Item;
  readonly onChange: (items: readonly Item[]) => void;
}

function PathList<Item extends { readonly path: string }>(props: PathListProps<Item>) {
  const { label, collection, items, create, onChange } = props;
  const [typed, setTyped] = useState('');
  const paths = items.map(({ path }) => path);
  const suggestions = usePathSuggestions(collection, typed).filter(
    ({ value }) => !value.startsWith('$') && !paths.includes(value),
  );
  const add = (path: string) => {
    setTyped('');
    if (path !== '' && !paths.includes(path)) onChange([...items, create(path)]);
  };
  return (
    <Field label={label}>
      {(control) => (
        <div className={styles.chips}>
          <Chips
            ids={paths}
            onChange={(kept) => onChange(items.filter(({ path }) => kept.includes(path)))}
          />
          <SuggestInput
            id={control.id}
            className={styles.chipInput}
            placeholder="add a metadata path"
            value={typed}
            suggestions={suggestions}
            onChange={setTyped}
            onChoose={add}
            onFocusChange={(hasFocus) => !hasFocus && add(typed)}
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

function ReplyFields({ draft: { options }, errorOf, change }: OptionFieldsProps) {
  const members = [
    ['include_metadata', 'Metadata'],
    ['include_values', 'Values'],
    ['include_sequence', 'Sequence'],
    ['explain', 'Timings'],
  ] as const;
  return (
    <FieldGroup label="In the reply">
      <div className={styles.checks}>
        {members.map(([member, label]) => (
          <Checkbox
            key={member}
            label={label}
            isChecked={options[member] !== undefined && options[member] !== false}
            onChange={(isChecked) => change({ [member]: isChecked ? true : undefined })}
          />
        ))}
      </div>
      <NumberField
        label="Includes the write with sequence"
        value={options.min_sequence}
        placeholder="the newest state"
        error={errorOf('/min_sequence')}
        onChange={(min_sequence) => change({ min_sequence })}
      />
    </FieldGroup>
  );
}
