// The matches of a query with groups, one section for each group.

import type { CollectionRecord } from '@sagitta/client';
import { type ReactNode, useId } from 'react';
import { classNames } from '../../ui/class-names.js';
import { formatScore, pluralize } from '../../ui/format.js';
import { formatValue, previewText, previewTitle } from '../vectors/preview.js';
import { groupsOf } from './group-matches.js';
import styles from './query.module.css';
import { ResultCards } from './result-cards.js';
import type { ResultMatch } from './use-matches.js';

interface MatchGroupsProps {
  readonly collection: CollectionRecord;
  readonly matches: readonly ResultMatch[];
  readonly titlePath: string | undefined;
  /** The metadata paths to show on cards. */
  readonly paths: readonly string[];
  readonly isOfCards: boolean;
  readonly openId: string | undefined;
  readonly onOpen: (id: string) => void;
}

export function MatchGroups(props: MatchGroupsProps) {
  const id = useId();
  return (
    <div className={styles.groups}>
      {groupsOf(props.matches).map(({ value, matches }) => (
        <section key={`${typeof value} ${value}`} aria-labelledby={`${id} ${value}`}>
          <h2 className={styles.groupHeading} id={`${id} ${value}`}>
            <bdi>{value === '' ? '(empty text)' : formatValue(value)}</bdi>{' '}
            <span className={styles.note}>{pluralize(matches.length, 'match', 'matches')}</span>
          </h2>
          {props.isOfCards ? (
            <ResultCards {...props} matches={matches} />
          ) : (
            <MatchList {...props} matches={matches} />
          )}
        </section>
      ))}
    </div>
  );
}

function MatchList({ collection, matches, titlePath, openId, onOpen }: MatchGroupsProps) {
  return (
    <ol className={styles.matchList}>
      {matches.map((match, at) => {
        const text = previewText(match.metadata, collection);
        const isTitle = text === previewTitle(match.metadata, titlePath);
        return (
          <li key={match.id}>
            <button
              type="button"
              className={classNames(styles.compared, match.id === openId && styles.open)}
              onClick={() => onOpen(match.id)}
            >
              <MatchLine match={match} rank={at + 1} titlePath={titlePath}>
                {isTitle ? match.id : (text ?? match.id)}
              </MatchLine>
            </button>
          </li>
        );
      })}
    </ol>
  );
}

interface MatchLineProps {
  readonly match: ResultMatch;
  readonly rank: number;
  readonly titlePath: string | undefined;
  /** The second line. */
  readonly children: ReactNode;
}

/** Rank, title and score of a match. */
export function MatchLine({ match, rank, titlePath, children }: MatchLineProps) {
  return (
    <>
      <span className={styles.rank}>{rank}</span>
      <span className={styles.comparedText}>
        <bdi className={styles.comparedName} title={match.id}>
          {previewTitle(match.metadata, titlePath) ?? match.id}
        </bdi>
        <span className={styles.move}>{children}</span>
      </span>
      <span className={styles.score}>{formatScore(match.score)}</span>
    </>
  );
}
