// The legend of the colours. Categories can be hidden, and their points selected.

import { Eye, EyeOff, SquareDashedMousePointer } from 'lucide-react';
import { IconButton } from '../../ui/button.js';
import { formatCount, formatScore } from '../../ui/format.js';
import { useShownTheme } from '../../ui/theme.js';
import {
  type ColumnColours,
  type LegendEntry,
  MISSING_ENTRY,
  SCALE_START,
} from './column-colours.js';
import styles from './map.module.css';
import { entryColour } from './palette.js';

interface MapLegendProps {
  readonly path: string;
  readonly colours: ColumnColours;
  readonly hidden: ReadonlySet<number>;
  readonly onHide: (hidden: ReadonlySet<number>) => void;
  /** Selects the points with the entry. */
  readonly onSelect: (entry: number) => void;
}

export function MapLegend({ path, colours, hidden, onHide, onSelect }: MapLegendProps) {
  if (colours.kind === 'scale') return <Scale path={path} colours={colours} />;
  const toggle = (entry: number) => {
    const next = new Set(hidden);
    if (!next.delete(entry)) next.add(entry);
    onHide(next);
  };
  return (
    <ul className={styles.legend} aria-label={`Colours of ${path}`}>
      {colours.legend.map((item) => (
        <Entry
          key={item.entry}
          item={item}
          isHidden={hidden.has(item.entry)}
          onToggle={() => toggle(item.entry)}
          onSelect={() => onSelect(item.entry)}
        />
      ))}
    </ul>
  );
}

interface EntryProps {
  readonly item: LegendEntry;
  readonly isHidden: boolean;
  readonly onToggle: () => void;
  readonly onSelect: () => void;
}

function Entry({ item: { entry, label, count }, isHidden, onToggle, onSelect }: EntryProps) {
  const theme = useShownTheme();
  return (
    <li className={styles.entry} data-hidden={isHidden}>
      <span className={styles.swatch} style={{ background: entryColour(theme, entry) }} />
      <span className={styles.entryLabel} title={label} dir="auto">
        {label}
      </span>
      <span className={styles.count}>{formatCount(count)}</span>
      <IconButton
        icon={SquareDashedMousePointer}
        label={`Select ${label}`}
        disabled={isHidden}
        onClick={onSelect}
      />
      <IconButton
        icon={isHidden ? EyeOff : Eye}
        label={isHidden ? `Show ${label}` : `Hide ${label}`}
        aria-pressed={isHidden}
        onClick={onToggle}
      />
    </li>
  );
}

const STOPS = 12;

interface ScaleProps {
  readonly path: string;
  readonly colours: Extract<ColumnColours, { kind: 'scale' }>;
}

function Scale({ path, colours: { min, max, missingCount } }: ScaleProps) {
  const theme = useShownTheme();
  const stops = Array.from({ length: STOPS }, (_, at) =>
    entryColour(theme, Math.round(SCALE_START + (at / (STOPS - 1)) * (255 - SCALE_START))),
  );
  return (
    <div className={styles.scale}>
      <div
        role="img"
        aria-label={`${path} from ${formatScore(min)} to ${formatScore(max)}`}
        className={styles.gradient}
        style={{ background: `linear-gradient(to right, ${stops.join(', ')})` }}
      />
      <div className={styles.scaleEnds}>
        <span>{formatScore(min)}</span>
        <span>{formatScore(max)}</span>
      </div>
      {missingCount > 0 && (
        <p className={styles.entry}>
          <span
            className={styles.swatch}
            style={{ background: entryColour(theme, MISSING_ENTRY) }}
          />
          <span className={styles.entryLabel}>None</span>
          <span className={styles.count}>{formatCount(missingCount)}</span>
        </p>
      )}
    </div>
  );
}
