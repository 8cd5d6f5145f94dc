// The matches of a join as a virtualised grid. The arrow keys choose a row, whose two vectors are compared
// beside the grid.

import type { JsonObject } from '@sagitta/client';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, useId, useRef, useState } from 'react';
import { formatScoreInColumn } from '../../ui/format.js';
import { compareMetadata } from '../duplicates/compare-metadata.js';
import { JoinComparison } from './join-comparison.js';
import type { JoinedMetadata, JoinMatch } from './join-matches.js';
import styles from './join-table.module.css';
import { useJoinedMetadata } from './use-joined-metadata.js';

const ROW_PIXELS = 36;
/** The number of rows that Page Up and Page Down move. */
const PAGE_ROWS = 10;

interface JoinTableProps {
  readonly collections: { readonly left: string; readonly right: string };
  readonly matches: readonly JoinMatch[];
}

export function JoinTable({ collections, matches }: JoinTableProps) {
  const [chosen, setChosen] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const gridId = useId();
  const virtualizer = useVirtualizer({
    count: matches.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PIXELS,
    overscan: 8,
  });
  const items = virtualizer.getVirtualItems();
  const metadataOf = useJoinedMetadata({
    collections,
    matches,
    first: items[0]?.index ?? 0,
    last: items.at(-1)?.index ?? 0,
  });
  // The row may have been chosen in a longer, previous result.
  const current = Math.min(chosen, matches.length - 1);
  const choose = (row: number) => {
    setChosen(row);
    virtualizer.scrollToIndex(row);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rowAfterKey(event.key, current, matches.length);
    if (row === undefined) return;
    event.preventDefault();
    choose(row);
  };
  return (
    <div className={styles.layout}>
      <div ref={scroller} className={styles.scroll}>
        <div
          role="grid"
          aria-label="Matches"
          aria-rowcount={matches.length + 1}
          aria-activedescendant={`${gridId}-${current}`}
          tabIndex={0}
          className={styles.grid}
          onKeyDown={onKeyDown}
        >
          <Heading collections={collections} />
          <div
            role="rowgroup"
            className={styles.rows}
            style={{ height: virtualizer.getTotalSize() }}
          >
            {items.map(({ index, start }) => (
              <Row
                key={index}
                id={`${gridId}-${index}`}
                row={index}
                top={start}
                match={matches[index]!}
                metadata={metadataOf(index)}
                isChosen={index === current}
                onChoose={setChosen}
              />
            ))}
          </div>
        </div>
      </div>
      <JoinComparison collections={collections} match={matches[current]!} />
    </div>
  );
}

function rowAfterKey(key: string, row: number, count: number): number | undefined {
  const rows: Record<string, number> = {
    ArrowDown: row + 1,
    ArrowUp: row - 1,
    PageDown: row + PAGE_ROWS,
    PageUp: row - PAGE_ROWS,
    Home: 0,
    End: count - 1,
  };
  const next = rows[key];
  return next === undefined ? undefined : Math.min(count - 1, Math.max(0, next));
}

function Heading({ collections }: Pick<JoinTableProps, 'collections'>) {
  return (
    <div role="row" aria-rowindex={1} className={styles.heading}>
      <span role="columnheader">
        <bdi>{collections.left}</bdi>
      </span>
      <span role="columnheader" className={styles.score}>
        Score
      </span>
      <span role="columnheader">
        <bdi>{collections.right}</bdi>
      </span>
    </div>
  );
}

interface RowProps {
  readonly id: string;
  readonly row: number;
  readonly top: number;
  readonly match: JoinMatch;
  readonly metadata: JoinedMetadata | undefined;
  readonly isChosen: boolean;
  readonly onChoose: (row: number) => void;
}

function Row({ id, row, top, match, metadata, isChosen, onChoose }: RowProps) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles the keys
    <div
      id={id}
      role="row"
      aria-rowindex={row + 2}
      aria-selected={isChosen}
      className={styles.row}
      style={{ transform: `translateY(${top}px)` }}
      onClick={() => onChoose(row)}
    >
      <Cell id={match.id} metadata={metadata?.left.get(match.id)} />
      <span role="gridcell" className={styles.score}>
        {formatScoreInColumn(match.score)}
      </span>
      <Cell id={match.matchId} metadata={metadata?.right.get(match.matchId)} />
    </div>
  );
}

interface CellProps {
  readonly id: string;
  readonly metadata: JsonObject | undefined;
}

function Cell({ id, metadata }: CellProps) {
  return (
    <span role="gridcell" className={styles.cell}>
      <span className={styles.id} dir="auto">
        {id}
      </span>
      <span className={styles.text} dir="auto">
        {metadata && summaryOf(metadata)}
      </span>
    </span>
  );
}

/** The number of metadata values that fit on a line. */
const VALUES_IN_SUMMARY = 4;

function summaryOf(metadata: JsonObject): string {
  return compareMetadata([metadata])
    .slice(0, VALUES_IN_SUMMARY)
    .map(({ values }) => values[0])
    .join(' · ');
}
