// The search box of the map: finds points by id, title or text, marks them, and flies to the one that is chosen.

import { Search, SquareDashedMousePointer, X } from 'lucide-react';
import { type KeyboardEvent, useEffect, useId, useState } from 'react';
import { IconButton } from '../../ui/button.js';
import { Field } from '../../ui/field.js';
import { formatCount, pluralize } from '../../ui/format.js';
import { SuggestInput } from '../../ui/suggest-input.js';
import styles from './map.module.css';
import type { MapData } from './map-state.js';
import { NO_HITS, type PointHits } from './point-search.js';
import type { PointTextSource } from './use-point-texts.js';

interface MapSearchProps {
  readonly data: MapData;
  readonly hits: PointHits;
  readonly text: string;
  readonly onText: (text: string) => void;
  /** Flies to a point and selects it. */
  readonly onGo: (point: number) => void;
  readonly onSelectAll: () => void;
}

export function MapSearch({ data, hits, text, onText, onGo, onSelectAll }: MapSearchProps) {
  const { best, count } = hits;
  const noteId = useId();
  /** The text for which a point has been chosen; its suggestions would cover the map. */
  const [doneText, setDoneText] = useState<string>();
  const go = (point: number) => {
    setDoneText(text);
    onGo(point);
  };
  const goTo = (id: string) => {
    const hit = best.find(({ point }) => data.ids[point] === id);
    if (hit !== undefined) go(hit.point);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    // With a suggestion chosen by the arrow keys, Enter chooses that one.
    const hasChoice = event.currentTarget.getAttribute('aria-activedescendant') !== null;
    if (event.key === 'Enter' && !hasChoice && best[0] !== undefined) go(best[0].point);
  };
  const isMissing = text.trim() !== '' && count === 0;
  return (
    <div className={styles.search}>
      <Field label="Find on the map">
        {({ id }) => (
          <div className={styles.searchBox}>
            <Search size={15} aria-hidden className={styles.searchIcon} />
            <SuggestInput
              id={id}
              value={text}
              placeholder="Id, title or text"
              className={styles.searchInput}
              describedBy={noteId}
              suggestions={(doneText === text ? [] : best).map(({ point, title, excerpt }) => ({
                value: data.ids[point]!,
                title,
                detail: excerpt,
              }))}
              onChange={onText}
              onChoose={goTo}
              onKeyDown={onKeyDown}
            />
            {text !== '' && (
              <IconButton icon={X} label="Clear the search" onClick={() => onText('')} />
            )}
          </div>
        )}
      </Field>
      <p id={noteId} role="status" className={styles.searchNote}>
        {isMissing && `No match among ${pluralize(data.ids.length, 'vector')}.`}
        {count > 0 && pluralize(count, 'match', 'matches')}
      </p>
      {count > 1 && (
        <IconButton
          icon={SquareDashedMousePointer}
          label={`Select ${formatCount(hits.points.length)} matches`}
          onClick={onSelectAll}
        />
      )}
    </div>
  );
}

/** The points that match the text; those of the previous text until the worker has answered. */
export function useHits(source: PointTextSource | undefined, text: string): PointHits {
  const [hits, setHits] = useState(NO_HITS);
  useEffect(() => {
    if (text.trim() === '' || source === undefined) {
      setHits(NO_HITS);
      return;
    }
    let isCurrent = true;
    void source.search(text).then((found) => isCurrent && setHits(found));
    return () => {
      isCurrent = false;
    };
  }, [source, text]);
  return hits;
}
