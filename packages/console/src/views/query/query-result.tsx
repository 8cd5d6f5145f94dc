// The result of one query: figures, and the matches as a table or as cards.

import type { CollectionRecord, QueryRequest } from '@sagitta/client';
import { Code, LayoutGrid, Table2 } from 'lucide-react';
import { useMemo, useState } from 'react';
import { useFoundPaths } from '../../api/queries.js';
import { useStore } from '../../api/store.js';
import { Button, IconButton } from '../../ui/button.js';
import { formatCount, formatMilliseconds } from '../../ui/format.js';
import { Empty, ErrorMessage, Loading } from '../../ui/states.js';
import { browseState, defaultColumns, PICTURE_KEY, VALUES_KEY } from '../browse/browse-state.js';
import {
  ID_COLUMN,
  metadataColumn,
  pictureColumn,
  VALUES_COLUMN,
  type VectorTableColumn,
} from '../vectors/vector-columns.js';
import { VectorTable } from '../vectors/vector-table.js';
import { CopyDialog } from './copy-dialog.js';
import styles from './query.module.css';
import type { QueryState } from './query-state.js';
import { ResultCards } from './result-cards.js';
import { Scores, Timings } from './result-figures.js';
import { scoreFormat } from './score-buckets.js';
import type { Matches, ResultMatch } from './use-matches.js';

interface QueryResultProps {
  readonly collection: CollectionRecord;
  readonly request: QueryRequest;
  readonly result: Matches;
  /** The keys of the columns after rank, score and id. */
  readonly columns: readonly string[];
  readonly state: QueryState;
  readonly change: (part: Partial<QueryState>) => void;
}

export function QueryResult(props: QueryResultProps) {
  const { collection, request, result, state, change, columns } = props;
  const { matches, first, error, isRunning } = result;
  const isByWords = request.text !== undefined;
  if (first === undefined) {
    if (error !== undefined) return <ErrorMessage error={error} onRetry={result.retry} />;
    return <Loading label="Searching" />;
  }
  return (
    <section className={styles.result} aria-label="Result" aria-busy={isRunning}>
      <ResultHeader {...props} />
      {error !== undefined && <ErrorMessage error={error} onRetry={result.retry} />}
      {matches.length === 0 ? (
        <Empty title="No vector matches">
          {request.score_threshold !== undefined && 'Lower the minimum score. '}
          {request.filter !== undefined && 'Change the filter. '}
        </Empty>
      ) : (
        <>
          <div className={styles.figures}>
            <Scores
              result={result}
              hasAllScores={state.hasAllScores}
              onAllScores={isByWords ? undefined : (hasAllScores) => change({ hasAllScores })}
            />
            <Timings page={first} />
          </div>
          {state.layout === 'table' ? (
            <MatchTable {...props} />
          ) : (
            <ResultCards
              collection={collection}
              matches={matches}
              paths={columns.filter((key) => !key.startsWith('$'))}
              openId={state.openId}
              onOpen={(openId) => change({ openId })}
            />
          )}
          {(result.readMore !== undefined || result.isReadingMore) && (
            <div className={styles.more}>
              <Button onClick={result.readMore} isBusy={result.isReadingMore}>
                Show {formatCount(request.limit ?? 0)} more
              </Button>
            </div>
          )}
        </>
      )}
    </section>
  );
}

function ResultHeader({ collection, request, result, state, change }: QueryResultProps) {
  const [isCopying, setCopying] = useState(false);
  const { matches, first } = result;
  const { total, sequence, warnings = [] } = first!.reply;
  return (
    <header className={styles.resultHeader}>
      <p role="status" className={styles.count}>
        <strong>{formatCount(matches.length)}</strong>
        {total !== undefined && ` of ${formatCount(total)}`} matches
        <span className={styles.note}>
          {' '}
          in {formatMilliseconds(first!.totalMs)}, at sequence {formatCount(sequence)}
        </span>
        {warnings.map(({ detail }) => (
          <span key={detail} className={styles.note}>
            <br />
            {detail}
          </span>
        ))}
      </p>
      <IconButton
        icon={Table2}
        label="Show a table"
        aria-pressed={state.layout === 'table'}
        className={styles.toggle}
        onClick={() => change({ layout: 'table' })}
      />
      <IconButton
        icon={LayoutGrid}
        label="Show cards"
        aria-pressed={state.layout === 'cards'}
        className={styles.toggle}
        onClick={() => change({ layout: 'cards' })}
      />
      <Button icon={Code} onClick={() => setCopying(true)}>
        Copy as
      </Button>
      <CopyDialog
        collectionId={collection.id}
        request={request}
        isOpen={isCopying}
        onClose={() => setCopying(false)}
      />
    </header>
  );
}

function MatchTable({ collection, result, columns, state, change }: QueryResultProps) {
  const { matches } = result;
  const { data: paths } = useFoundPaths(collection.id);
  const tableColumns = useMemo(() => {
    const byPath = new Map((paths ?? []).map((found) => [found.path, found]));
    return [
      ...matchColumns(matches),
      ...columns.map((key) => {
        if (key === PICTURE_KEY) return pictureColumn(collection);
        if (key === VALUES_KEY) return VALUES_COLUMN;
        return { ...metadataColumn(key, byPath.get(key), matches), isSortable: false };
      }),
    ];
  }, [collection, columns, paths, matches]);
  return (
    <VectorTable
      label="Matches, best first"
      className={styles.table}
      columns={tableColumns}
      rowCount={matches.length}
      rowAt={(index) => matches[index]}
      openId={state.openId}
      onOpen={({ id }) => change({ openId: id })}
    />
  );
}

function matchColumns(matches: readonly ResultMatch[]): VectorTableColumn[] {
  const hasDistance = matches.some(({ distance }) => distance !== undefined);
  const format = scoreFormat(matches.map(({ score }) => score));
  const formatDistance = scoreFormat(matches.map(({ distance = 0 }) => distance));
  const number = (label: string, of: (match: ResultMatch, index: number) => string) => ({
    key: `$${label}`,
    label,
    width: label === 'rank' ? 64 : 110,
    isNumber: true,
    render: (_row: unknown, index: number) => of(matches[index]!, index),
  });
  return [
    number('rank', (_match, index) => formatCount(index + 1)),
    number('score', ({ score }) => format(score)),
    ...(hasDistance ? [number('distance', ({ distance = 0 }) => formatDistance(distance))] : []),
    { ...ID_COLUMN, isSortable: false },
  ];
}

/** The columns of the browse view, so that users choose them in one place. */
export function useResultColumns(collection: CollectionRecord): readonly string[] {
  const { columns } = useStore(browseState(collection.id));
  const { data: paths } = useFoundPaths(collection.id);
  return useMemo(
    () => columns ?? defaultColumns(collection, paths ?? []),
    [columns, collection, paths],
  );
}
