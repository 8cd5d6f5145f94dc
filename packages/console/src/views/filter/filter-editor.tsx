// Edits a filter as conditions in groups or as JSON, and shows how many vectors pass. Parts that the
// conditions cannot express stay JSON.

import { type CollectionRecord, type JsonObject, SagittaClientError } from '@sagitta/client';
import { Braces, FolderPlus, Plus, Trash2, X } from 'lucide-react';
import { useMemo, useState } from 'react';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { Button, IconButton } from '../../ui/button.js';
import { CopyButton } from '../../ui/copy-button.js';
import { Select } from '../../ui/field.js';
import { formatCount, pluralize } from '../../ui/format.js';
import { ErrorMessage } from '../../ui/states.js';
import { ConditionRow } from './condition-row.js';
import styles from './filter-editor.module.css';
import {
  type FilterGroup,
  type FilterItem,
  isGroup,
  itemAt,
  newCondition,
  newGroup,
  parseFilterGroup,
  replaceItem,
  writeFilter,
} from './filter-model.js';
import { ObjectInput } from './operand-input.js';
import { type FilterCount, useFilterCount } from './use-filter-count.js';

interface FilterEditorProps {
  readonly collection: CollectionRecord;
  /** Undefined if every vector passes. */
  readonly value: JsonObject | undefined;
  readonly onChange: (filter: JsonObject | undefined) => void;
  /** A name within the collection under which unfinished conditions are kept while the editor is closed. */
  readonly draftKey?: string;
}

export function FilterEditor({ collection, value, onChange, draftKey }: FilterEditorProps) {
  const [root, change] = useFilterModel(
    value,
    onChange,
    draftKey && `${collection.id}/${draftKey}`,
  );
  const [isJsonShown, setJsonShown] = useState(false);
  const { filter, pointers } = useMemo(() => writeFilter(root), [root]);
  const result = useFilterCount(collection, filter);
  const errors = useMemo(() => errorsByItem(result.error, pointers), [result.error, pointers]);
  const areErrorsShown = errors.size > 0 && !errors.has(root.key);
  return (
    <fieldset className={styles.editor} aria-label="Filter">
      <header className={styles.header}>
        <span className={styles.title}>Filter</span>
        <CountNote {...result} total={collection.vector_count} isFiltered={filter !== undefined} />
        <div className={styles.headerActions}>
          <Button
            kind="quiet"
            icon={Braces}
            aria-expanded={isJsonShown}
            onClick={() => setJsonShown(!isJsonShown)}
          >
            JSON
          </Button>
          {root.items.length > 0 && (
            <Button kind="quiet" icon={X} onClick={() => change({ ...root, items: [] })}>
              Clear
            </Button>
          )}
        </div>
      </header>
      <GroupItems collection={collection} group={root} errors={errors} onChange={change} />
      {isJsonShown && (
        <div className={styles.jsonBox}>
          <ObjectInput
            label="The filter as JSON"
            placeholder='{"year": {"$gte": 2020}}'
            value={filter}
            onChange={(next) => change(parseFilterGroup(next))}
          />
          <CopyButton text={() => stringifyExactJson(filter ?? {})} label="Copy the filter" />
        </div>
      )}
      {result.error !== undefined && !areErrorsShown && <ErrorMessage error={result.error} />}
    </fieldset>
  );
}

/** The contents of closed editors, including unfinished conditions. */
const drafts = new Map<string, FilterGroup>();

/** The edited groups; a new `value` from outside replaces them. */
function useFilterModel(
  value: JsonObject | undefined,
  onChange: (filter: JsonObject | undefined) => void,
  draftKey: string | undefined,
): [FilterGroup, (root: FilterGroup) => void] {
  const text = stringifyExactJson(value);
  const [state, setState] = useState(() => ({ root: openDraft(value, draftKey), text }));
  let { root } = state;
  if (text !== state.text) {
    root = parseFilterGroup(value);
    setState({ root, text });
  }
  const change = (next: FilterGroup) => {
    const { filter } = writeFilter(next);
    setState({ root: next, text: stringifyExactJson(filter) });
    if (draftKey !== undefined) drafts.set(draftKey, next);
    onChange(filter);
  };
  return [root, change];
}

function openDraft(value: JsonObject | undefined, draftKey: string | undefined): FilterGroup {
  const draft = draftKey === undefined ? undefined : drafts.get(draftKey);
  const isSame =
    draft !== undefined &&
    stringifyExactJson(writeFilter(draft).filter) === stringifyExactJson(value);
  return isSame ? draft : parseFilterGroup(value);
}

interface CountNoteProps extends FilterCount {
  readonly total: number;
  readonly isFiltered: boolean;
}

function CountNote({ count, isOutdated, total, isFiltered }: CountNoteProps) {
  const vectors = pluralize(total, 'vector');
  return (
    <p className={styles.count} aria-live="polite" aria-busy={isOutdated}>
      {isFiltered ? count !== undefined && `${formatCount(count)} of ${vectors} pass` : vectors}
    </p>
  );
}

interface GroupItemsProps {
  readonly collection: CollectionRecord;
  readonly group: FilterGroup;
  /** The server's errors by item key. */
  readonly errors: ReadonlyMap<number, string>;
  readonly onChange: (group: FilterGroup) => void;
}

function GroupItems({ collection, group, errors, onChange }: GroupItemsProps) {
  const add = (item: FilterItem) => onChange({ ...group, items: [...group.items, item] });
  const replace = (key: number, item: FilterItem | null) => onChange(replaceItem(group, key, item));
  return (
    <>
      {group.items.length > 0 && (
        <ul className={styles.items}>
          {group.items.map((item) => (
            <li key={item.key}>
              <Item
                collection={collection}
                item={item}
                errors={errors}
                onChange={(next) => replace(item.key, next)}
              />
            </li>
          ))}
        </ul>
      )}
      <div className={styles.adders}>
        <Button kind="quiet" icon={Plus} onClick={() => add(newCondition())}>
          Condition
        </Button>
        <Button
          kind="quiet"
          icon={FolderPlus}
          onClick={() => add(newGroup('any', [newCondition(), newCondition()]))}
        >
          Group
        </Button>
      </div>
    </>
  );
}

interface ItemProps {
  readonly collection: CollectionRecord;
  readonly item: FilterItem;
  readonly errors: ReadonlyMap<number, string>;
  readonly onChange: (item: FilterItem | null) => void;
}

function Item({ collection, item, errors, onChange }: ItemProps) {
  const error = errors.get(item.key);
  const remove = () => onChange(null);
  if (item.kind === 'condition') {
    return (
      <ConditionRow
        collection={collection}
        condition={item}
        error={error}
        onChange={onChange}
        onRemove={remove}
      />
    );
  }
  return (
    <div className={styles.group}>
      <div className={styles.groupHeader}>
        {isGroup(item) ? (
          <Select
            aria-label="How the conditions of the group are combined"
            value={item.kind}
            options={GROUP_KINDS}
            onChange={(kind) => onChange({ ...item, kind })}
          />
        ) : (
          <span className={styles.count}>Written as JSON</span>
        )}
        <IconButton
          icon={Trash2}
          label={isGroup(item) ? 'Remove the group' : 'Remove this part'}
          onClick={remove}
        />
      </div>
      {isGroup(item) ? (
        <GroupItems collection={collection} group={item} errors={errors} onChange={onChange} />
      ) : (
        <ObjectInput
          label="Part of the filter as JSON"
          rows={3}
          value={item.filter}
          onChange={(filter) => onChange({ ...item, filter: filter ?? {} })}
        />
      )}
      {error !== undefined && (
        <p className={styles.problem} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

const GROUP_KINDS = [
  { value: 'any', label: 'Any of these' },
  { value: 'all', label: 'All of these' },
  { value: 'not', label: 'Not all of these' },
] as const;

/** Assigns the parts of the server's error to the items that they are about. */
function errorsByItem(
  error: unknown,
  pointers: ReadonlyMap<number, string>,
): ReadonlyMap<number, string> {
  const errors = new Map<number, string>();
  if (!(error instanceof SagittaClientError)) return errors;
  for (const { pointer, detail } of error.items) {
    const key = itemAt(pointers, pointer.replace(/^\/filter/, ''));
    if (key !== undefined) errors.set(key, detail);
  }
  return errors;
}
