// The overlay above the points, in CSS pixels: labels of dense areas, the hovered point with its card and lines
// to its neighbours, the lasso, and the crosshair for the keyboard.

import type { ReactNode } from 'react';
import type { Position, ViewSize } from './camera.js';
import type { PlacedLabel } from './label-places.js';
import styles from './map.module.css';
import { entryColour } from './palette.js';

interface MapOverlayProps {
  readonly size: ViewSize;
  /** The position of a point on the screen. */
  readonly positionOf: (point: number) => Position;
  readonly labels: readonly PlacedLabel[];
  readonly theme: 'light' | 'dark';
  /** The lasso or rectangle. */
  readonly line: readonly Position[] | undefined;
  /** -1 for none. */
  readonly hovered: number;
  readonly neighbors: readonly number[];
  readonly isCrosshairShown: boolean;
  /** The card of the hovered point. */
  readonly children: ReactNode;
}

const CARD_WIDTH = 280;
const CARD_DISTANCE = 14;
const CARD_MARGIN = 8;

export function MapOverlay(props: MapOverlayProps) {
  const { size, positionOf, labels, theme, line, hovered, neighbors, isCrosshairShown } = props;
  const centre = hovered < 0 ? undefined : positionOf(hovered);
  return (
    <>
      <svg className={styles.overlay} width={size.width} height={size.height} aria-hidden>
        {centre !== undefined &&
          neighbors.map((neighbor) => {
            const end = positionOf(neighbor);
            return (
              <g key={neighbor} className={styles.neighbor}>
                <line x1={centre.x} y1={centre.y} x2={end.x} y2={end.y} />
                <circle cx={end.x} cy={end.y} r={5} />
              </g>
            );
          })}
        {centre !== undefined && (
          <circle className={styles.hovered} cx={centre.x} cy={centre.y} r={8} />
        )}
        {line !== undefined && (
          <polygon
            className={styles.lasso}
            points={line.map(({ x, y }) => `${x},${y}`).join(' ')}
          />
        )}
        {isCrosshairShown && <Crosshair x={size.width / 2} y={size.height / 2} />}
      </svg>
      <div className={styles.labels} aria-hidden>
        {labels.map(({ label: { text, entry, point }, x, y }) => (
          <span
            key={`${point} ${text}`}
            className={styles.label}
            style={{
              transform: `translate(-50%, -50%) translate(${x}px, ${y}px)`,
              ...(entry !== undefined && { borderColor: entryColour(theme, entry) }),
            }}
            dir="auto"
          >
            {text}
          </span>
        ))}
      </div>
      {centre !== undefined && (
        <div className={styles.card} style={cardStyle(centre, size)}>
          {props.children}
        </div>
      )}
    </>
  );
}

/** Puts the card beside the point, on the side with enough room. */
function cardStyle({ x, y }: Position, { width, height }: ViewSize) {
  const cardWidth = Math.min(CARD_WIDTH, width - 2 * CARD_MARGIN);
  const isRight = x + CARD_DISTANCE + cardWidth < width;
  const left = isRight ? x + CARD_DISTANCE : x - CARD_DISTANCE - cardWidth;
  const isLow = y > height / 2;
  return {
    width: cardWidth,
    left: Math.max(CARD_MARGIN, Math.min(width - cardWidth - CARD_MARGIN, left)),
    maxHeight: (isLow ? y : height - y) - CARD_MARGIN,
    ...(isLow ? { bottom: Math.max(CARD_MARGIN, height - y) } : { top: Math.max(CARD_MARGIN, y) }),
  };
}

function Crosshair({ x, y }: Position) {
  return (
    <path
      className={styles.crosshair}
      d={`M${x - 14} ${y}h10M${x + 4} ${y}h10M${x} ${y - 14}v10M${x} ${y + 4}v10`}
    />
  );
}
