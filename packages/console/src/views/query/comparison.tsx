// Two results side by side, with lines between common matches and their changes of rank.

import { useMemo, useState } from 'react';
import { Button } from '../../ui/button.js';
import { classNames } from '../../ui/class-names.js';
import { formatCount, formatMilliseconds } from '../../ui/format.js';
import { ErrorMessage, Loading } from '../../ui/states.js';
import { type ComparedMatch, compareMatches, describeMove } from './compare-matches.js';
import { MatchLine } from './match-groups.js';
import styles from './query.module.css';
import type { Matches, ResultMatch } from './use-matches.js';

interface ComparisonProps {
  readonly titlePath: string | undefined;
  readonly first: Matches;
  readonly second: Matches;
  readonly openId: string | undefined;
  readonly onOpen: (id: string) => void;
}

/** Pixels; also used to draw the lines between the lists. */
const ROW_HEIGHT = 52;

export function Comparison({ titlePath, first, second, openId, onOpen }: ComparisonProps) {
  const [markedId, setMarkedId] = useState<string>();
  const compared = useMemo(
    () => compareMatches(first.matches, second.matches),
    [first.matches, second.matches],
  );
  const shared = { titlePath, markedId, onMark: setMarkedId, openId, onOpen };
  const rowCount = Math.max(compared.first.length, compared.second.length);
  const hasBoth = first.first !== undefined && second.first !== undefined;
  return (
    <section className={styles.result} aria-label="Comparison">
      <p role="status" className={styles.count}>
        {hasBoth && (
          <>
            <strong>{formatCount(compared.commonCount)}</strong>{' '}
            {compared.commonCount === 1 ? 'match is' : 'matches are'} in both
            <span className={styles.note}>
              {' '}
              ({Math.round(compared.overlap * 100)} % of all), largest move{' '}
              {formatCount(compared.largestMove)}
            </span>
          </>
        )}
      </p>
      <div className={styles.comparison}>
        <Side name="First result" result={first} matches={compared.first} {...shared} />
        <svg
          className={styles.lines}
          viewBox={`0 0 100 ${Math.max(1, rowCount * ROW_HEIGHT)}`}
          style={{ height: rowCount * ROW_HEIGHT }}
          preserveAspectRatio="none"
          aria-hidden
        >
          {compared.first.map(({ match, rank, otherRank }) =>
            otherRank === undefined ? null : (
              <path
                key={match.id}
                className={classNames(styles.line, match.id === markedId && styles.marked)}
                d={linePath(rank, otherRank)}
              />
            ),
          )}
        </svg>
        <Side name="Second result" result={second} matches={compared.second} {...shared} />
      </div>
    </section>
  );
}

/** Connects the middles of the rows with these ranks. */
function linePath(rank: number, otherRank: number): string {
  const [from, to] = [(rank - 0.5) * ROW_HEIGHT, (otherRank - 0.5) * ROW_HEIGHT];
  return `M0 ${from}C50 ${from} 50 ${to} 100 ${to}`;
}

interface SideProps {
  readonly titlePath: string | undefined;
  readonly name: string;
  readonly result: Matches;
  readonly matches: readonly ComparedMatch<ResultMatch>[];
  readonly markedId: string | undefined;
  readonly onMark: (id: string | undefined) => void;
  readonly openId: string | undefined;
  readonly onOpen: (id: string) => void;
}

function Side(props: SideProps) {
  const { titlePath, name, result, matches, markedId, onMark, openId, onOpen } = props;
  const { first, error } = result;
  return (
    <section className={styles.side} aria-label={name}>
      <header className={styles.sideHeader}>
        <h2>{name}</h2>
        {first !== undefined && (
          <span className={styles.note}>{formatMilliseconds(first.totalMs)}</span>
        )}
      </header>
      {error !== undefined && <ErrorMessage error={error} onRetry={result.retry} />}
      {first === undefined && error === undefined && <Loading label="Searching" />}
      <ol>
        {matches.map((compared) => {
          const { match, rank, otherRank } = compared;
          return (
            <li key={match.id} style={{ height: ROW_HEIGHT }}>
              <button
                type="button"
                className={classNames(
                  styles.compared,
                  otherRank === undefined && styles.single,
                  match.id === markedId && styles.marked,
                  match.id === openId && styles.open,
                )}
                onClick={() => onOpen(match.id)}
                onFocus={() => onMark(match.id)}
                onBlur={() => onMark(undefined)}
                onMouseEnter={() => onMark(match.id)}
                onMouseLeave={() => onMark(undefined)}
              >
                <MatchLine match={match} rank={rank} titlePath={titlePath}>
                  {describeMove(compared)}
                </MatchLine>
              </button>
            </li>
          );
        })}
      </ol>
      {(result.readMore !== undefined || result.isReadingMore) && (
        <Button kind="quiet" onClick={result.readMore} isBusy={result.isReadingMore}>
          Show more
        </Button>
      )}
    </section>
  );
}
