// The result of one query: the matches as a table, as cards or in groups, facets, and figures.

import type { CollectionRecord, JsonObject, QueryRequest } from '@sagitta/client';
import { useMemo, useRef } from 'react';
import { useFoundPaths } from '../../api/queries.js';
import { useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { formatCount, formatMilliseconds } from '../../ui/format.js';
import { Empty, ErrorMessage, Loading } from '../../ui/states.js';
import { useElementSize } from '../../ui/use-element-size.js';
import { browseState, defaultColumns, PICTURE_KEY, VALUES_KEY } from '../browse/browse-state.js';
import { previewTitle } from '../vectors/preview.js';
import {
  fittingWidth,
  ID_COLUMN,
  metadataColumn,
  pictureColumn,
  VALUES_COLUMN,
  type VectorTableColumn,
} from '../vectors/vector-columns.js';
import { TALL_ROW_HEIGHT, tableHeight, VectorTable } from '../vectors/vector-table.js';
import type { Scalar } from './facet-filter.js';
import { MatchGroups } from './match-groups.js';
import styles from './query.module.css';
import type { ResultLayout } from './query-state.js';
import { ReplySummaries } from './reply-summaries.js';
import { ResultCards } from './result-cards.js';
import { Scores, Timings } from './result-figures.js';
import { scoreFormat } from './score-buckets.js';
import type { Matches, ResultMatch } from './use-matches.js';
import { useTitlePath } from './use-rows.js';

interface QueryResultProps {
  readonly collection: CollectionRecord;
  readonly request: QueryRequest;
  readonly result: Matches;
  readonly layout: ResultLayout;
  readonly openId: string | undefined;
  readonly onOpen: (id: string) => void;
  /** Adds the value of a facet to the filter, or removes it. */
  readonly onToggle: (path: string, value: Scalar) => void;
  readonly onAllScores: (hasAllScores: boolean) => void;
}

export function QueryResult(props: QueryResultProps) {
  const { request, result, onToggle } = props;
  const { matches, first, error, isRunning } = result;
  if (first === undefined) {
    if (error !== undefined) return <ErrorMessage error={error} onRetry={result.retry} />;
    return <Loading label="Searching" />;
  }
  return (
    <section className={styles.result} aria-label="Result" aria-busy={isRunning}>
      {error !== undefined && <ErrorMessage error={error} onRetry={result.retry} />}
      <ReplySummaries
        reply={first.reply}
        filter={request.filter as JsonObject | undefined}
        onToggle={onToggle}
      />
      {matches.length === 0 ? (
        <Empty title="No vector matches">
          {request.score_threshold !== undefined && 'Lower the minimum score. '}
          {request.filter !== undefined && 'Change the filter. '}
        </Empty>
      ) : (
        <>
          <MatchesIn {...props} />
          {(result.readMore !== undefined || result.isReadingMore) && (
            <div className={styles.more}>
              <Button onClick={result.readMore} isBusy={result.isReadingMore}>
                Show {request.limit === undefined ? '' : `${formatCount(request.limit)} `}more
              </Button>
            </div>
          )}
          <Figures {...props} />
        </>
      )}
    </section>
  );
}

/** The number of matches, and how long the query took. */
export function ResultSummary({ result }: { readonly result: Matches }) {
  const { matches, first } = result;
  if (first === undefined) return null;
  const { total, sequence, warnings = [] } = first.reply;
  return (
    <p role="status" className={styles.count}>
      <strong>{formatCount(matches.length)}</strong>
      {total !== undefined && ` of ${formatCount(total)}`} matches
      <span className={styles.note}>
        {' '}
        in {formatMilliseconds(first.totalMs)}, at sequence {formatCount(sequence)}
      </span>
      {warnings.map(({ detail }) => (
        <span key={detail} className={styles.note}>
          <br />
          {detail}
        </span>
      ))}
    </p>
  );
}

function MatchesIn({ collection, request, result, layout, openId, onOpen }: QueryResultProps) {
  const columns = useResultColumns(collection);
  const titlePath = useTitlePath(collection.id);
  const shared = {
    collection,
    matches: result.matches,
    titlePath,
    paths: columns.filter((key) => !key.startsWith('$')),
    openId,
    onOpen,
  };
  if (request.group_by !== undefined) {
    return <MatchGroups {...shared} isOfCards={layout === 'cards'} />;
  }
  if (layout === 'cards') return <ResultCards {...shared} />;
  return <MatchTable {...shared} columns={columns} hasValues={request.include_values === true} />;
}

/** Queries whose scores the server can summarize for all vectors are those by vectors. */
function Figures({ request, result, onAllScores }: QueryResultProps) {
  const { text, sparse, multi_vector, fusion, prefetch } = request;
  const isByVector = [text, sparse, multi_vector, fusion, prefetch].every(
    (member) => member === undefined,
  );
  return (
    <div className={styles.figures}>
      <Scores
        result={result}
        hasAllScores={request.score_stats !== undefined}
        onAllScores={isByVector ? onAllScores : undefined}
      />
      <Timings page={result.first!} />
    </div>
  );
}

interface MatchTableProps {
  readonly collection: CollectionRecord;
  readonly matches: readonly ResultMatch[];
  readonly titlePath: string | undefined;
  /** The keys of the columns after the title and the id. */
  readonly columns: readonly string[];
  readonly hasValues: boolean;
  readonly openId: string | undefined;
  readonly onOpen: (id: string) => void;
}

function MatchTable(props: MatchTableProps) {
  const { collection, matches, titlePath, columns, hasValues, openId, onOpen } = props;
  const { data: paths } = useFoundPaths(collection.id);
  const tableColumns = useMemo(() => {
    const byPath = new Map((paths ?? []).map((found) => [found.path, found]));
    const others = columns
      .filter((key) => key !== titlePath && key !== PICTURE_KEY)
      .map((key) =>
        key === VALUES_KEY
          ? VALUES_COLUMN
          : { ...metadataColumn(key, byPath.get(key), matches), isSortable: false },
      );
    // Long texts say most about a match, so they come where they are not cut.
    const isLong = ({ isGrowing }: VectorTableColumn) => isGrowing === true;
    // Without long texts, all of them share the free width.
    const isGrowing = !others.some(isLong);
    return [
      ...scoreColumns(matches),
      ...(columns.includes(PICTURE_KEY) ? [pictureColumn(collection)] : []),
      ...(titlePath === undefined ? [] : [{ ...titleColumn(titlePath, matches), isGrowing }]),
      {
        ...ID_COLUMN,
        width: fittingWidth(matches.map(({ id }) => id)),
        isSortable: false,
        isGrowing,
      },
      ...others.filter(isLong).map((column) => ({ ...column, width: LONG_WIDTH_MIN })),
      ...others
        .filter((column) => !isLong(column))
        .map((column) => ({ ...column, isGrowing: isGrowing && column.isNumber !== true })),
    ].filter(({ key }) => key !== VALUES_KEY || hasValues);
  }, [collection, columns, paths, matches, titlePath, hasValues]);
  const frame = useRef<HTMLDivElement>(null);
  const { width } = useElementSize(frame);
  const isWide = tableColumns.reduce((sum, column) => sum + column.width, 0) > width;
  return (
    <div
      ref={frame}
      className={styles.tableFrame}
      style={{ height: tableHeight(matches.length, TALL_ROW_HEIGHT, isWide) }}
    >
      <VectorTable
        label="Matches, best first"
        className={styles.table}
        columns={tableColumns}
        rowCount={matches.length}
        rowHeight={TALL_ROW_HEIGHT}
        rowAt={(index) => matches[index]}
        openId={openId}
        onOpen={({ id }) => onOpen(id)}
      />
    </div>
  );
}

const TITLE_WIDTH_MAX = 220;
/** Long texts have two lines and grow into the free width. */
const LONG_WIDTH_MIN = 280;

function titleColumn(path: string, matches: readonly ResultMatch[]): VectorTableColumn {
  const titles = matches.map(({ metadata }) => previewTitle(metadata, path) ?? '');
  return {
    key: path,
    label: path,
    width: Math.min(TITLE_WIDTH_MAX, fittingWidth([path, ...titles])),
    render: ({ metadata }) => {
      const title = previewTitle(metadata, path);
      return (
        <bdi className={styles.title} title={title}>
          {title}
        </bdi>
      );
    },
  };
}

function scoreColumns(matches: readonly ResultMatch[]): VectorTableColumn[] {
  const hasDistance = matches.some(({ distance }) => distance !== undefined);
  const format = scoreFormat(matches.map(({ score }) => score));
  const formatDistance = scoreFormat(matches.map(({ distance = 0 }) => distance));
  const number = (label: string, of: (match: ResultMatch, index: number) => string) => ({
    key: `$${label}`,
    label,
    width: label === 'rank' ? 58 : 96,
    isNumber: true,
    render: (_row: unknown, index: number) => of(matches[index]!, index),
  });
  return [
    number('rank', (_match, index) => formatCount(index + 1)),
    number('score', ({ score }) => format(score)),
    ...(hasDistance ? [number('distance', ({ distance = 0 }) => formatDistance(distance))] : []),
  ];
}

/** The columns of the browse view, so that users choose them in one place. Values are shown only if chosen. */
function useResultColumns(collection: CollectionRecord): readonly string[] {
  const { columns } = useStore(browseState(collection.id));
  const { data: paths } = useFoundPaths(collection.id);
  return useMemo(
    () => columns ?? defaultColumns(collection, paths ?? []).filter((key) => key !== VALUES_KEY),
    [columns, collection, paths],
  );
}
