// The queries that were run in a collection: run again, named, removed.

import type { CollectionRecord } from '@sagitta/client';
import { Bookmark, ChevronDown, ChevronRight, Pencil, X } from 'lucide-react';
import { useState } from 'react';
import { useStore } from '../../api/store.js';
import { Button, IconButton } from '../../ui/button.js';
import { TextBox } from '../../ui/field.js';
import { formatTime } from '../../ui/format.js';
import styles from './query.module.css';
import type { QueryPair } from './query-draft.js';
import {
  describeQuery,
  keyOf,
  NAME_CHARACTERS_MAX,
  type PastQuery,
  withName,
} from './query-history.js';
import { queryHistory } from './query-state.js';

interface HistoryListProps {
  readonly collection: CollectionRecord;
  readonly isShown: boolean;
  readonly onShown: (isShown: boolean) => void;
  readonly onRun: (query: QueryPair) => void;
}

/** Nothing until a query has been run. */
export function HistoryList({ collection, isShown, onShown, onRun }: HistoryListProps) {
  const store = queryHistory(collection.id);
  const list = useStore(store);
  if (list.length === 0) return null;
  const named = list.filter(({ name }) => name !== undefined);
  const recent = list.filter(({ name }) => name === undefined);
  const rowsOf = (queries: readonly PastQuery[]) =>
    queries.map((past) => (
      <Row
        key={keyOf(past)}
        past={past}
        onRun={() => onRun(past)}
        onName={(name) => store.set(withName(list, past, name))}
        onRemove={() => store.set(list.filter((one) => one !== past))}
      />
    ));
  return (
    <section className={styles.history} aria-label="Queries that were run">
      <div className={styles.spread}>
        <Button
          kind="quiet"
          icon={isShown ? ChevronDown : ChevronRight}
          aria-expanded={isShown}
          onClick={() => onShown(!isShown)}
        >
          History ({list.length})
        </Button>
        {isShown && recent.length > 0 && (
          <Button kind="quiet" onClick={() => store.set(named)}>
            Clear
          </Button>
        )}
      </div>
      {isShown && (
        <>
          {named.length > 0 && <ul aria-label="Saved">{rowsOf(named)}</ul>}
          {recent.length > 0 && <ul aria-label="Recent">{rowsOf(recent)}</ul>}
        </>
      )}
    </section>
  );
}

interface RowProps {
  readonly past: PastQuery;
  readonly onRun: () => void;
  readonly onName: (name: string) => void;
  readonly onRemove: () => void;
}

function Row({ past, onRun, onName, onRemove }: RowProps) {
  const [typed, setTyped] = useState<string>();
  const description = describeQuery(past);
  const title = past.name ?? description;
  const save = () => {
    if (typed !== undefined) onName(typed);
    setTyped(undefined);
  };
  if (typed !== undefined) {
    return (
      <li className={styles.historyRow}>
        <TextBox
          autoFocus
          aria-label={`Name of ${description}`}
          placeholder="a name"
          maxLength={NAME_CHARACTERS_MAX}
          value={typed}
          onChange={setTyped}
          onBlur={save}
          onKeyDown={(event) => {
            if (event.key === 'Enter') save();
            else if (event.key === 'Escape') setTyped(undefined);
            else return;
            event.preventDefault();
            event.stopPropagation();
          }}
        />
      </li>
    );
  }
  return (
    <li className={styles.historyRow}>
      <button type="button" className={styles.historyRun} onClick={onRun} title={description}>
        <span className="visually-hidden">Run again: </span>
        <span className={styles.historyTitle} dir="auto">
          {title}
        </span>
        <span className={styles.note}>{formatTime(past.ranAt)}</span>
      </button>
      <IconButton
        icon={past.name === undefined ? Bookmark : Pencil}
        label={past.name === undefined ? `Save ${title}` : `Rename ${title}`}
        onClick={() => setTyped(past.name ?? '')}
      />
      <IconButton icon={X} label={`Remove ${title}`} onClick={onRemove} />
    </li>
  );
}
