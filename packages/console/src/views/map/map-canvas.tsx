// The canvas of the map and its overlay: labels, the hovered point with lines to its nearest neighbours, and
// the lasso.

import { type ReactNode, useId, useRef } from 'react';
import { pluralize } from '../../ui/format.js';
import { Empty } from '../../ui/states.js';
import { useShownTheme } from '../../ui/theme.js';
import type { AreaLabel } from './area-labels.js';
import { toScreen } from './camera.js';
import { placeLabels } from './label-places.js';
import styles from './map.module.css';
import { MapOverlay } from './map-overlay.js';
import { type MapModelProps, positionOf, useMapModel } from './use-map-model.js';
import { useRenderer } from './use-renderer.js';

interface MapCanvasProps extends MapModelProps {
  /** The labels to show where there is room. */
  readonly labels: readonly AreaLabel[];
  /** Points per unit of area around each point; undefined until they have been computed. */
  readonly densities: Float32Array | undefined;
  /** Whether the colours are still to come. */
  readonly isColouring: boolean;
  /** -1 for none. */
  readonly hovered: number;
  /** The nearest neighbours of the hovered point that are in the sample. */
  readonly neighbors: readonly number[];
  /** The card of the hovered point. */
  readonly card: ReactNode;
  /** A description of the hovered point for screen readers. */
  readonly spoken: string | undefined;
  /** The id of the collection. */
  readonly name: string;
}

export function MapCanvas(props: MapCanvasProps) {
  const { positions, colours, hidden, hovered, neighbors } = props;
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useShownTheme();
  const helpId = useId();
  const model = useMapModel(area, props);
  const { camera, size, flags, line, isKeyboard } = model;
  const isSupported = useRenderer(canvas, {
    camera,
    zoomFactor: model.zoomFactor,
    size,
    positions,
    entries: colours?.entries,
    isColouring: props.isColouring,
    flags,
    hasMarks: props.selection.size > 0 || props.found.length > 0,
    densities: props.densities,
    theme,
  });
  const screenPosition = (point: number) => toScreen(camera, size, positionOf(positions, point));
  return (
    <div
      ref={area}
      role="application"
      aria-label={`Map of ${pluralize(positions.length / 2, 'vector')} of ${props.name}`}
      aria-describedby={helpId}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keys of the map need the focus
      tabIndex={0}
      className={styles.area}
      data-tool={props.tool}
      onKeyDown={model.onKeyDown}
      onFocus={model.onFocus}
      onBlur={model.onBlur}
    >
      <canvas ref={canvas} className={styles.canvas} />
      {!isSupported && (
        <Empty title="The map needs WebGL 2">
          <p>This browser does not support it, or it is turned off.</p>
        </Empty>
      )}
      <MapOverlay
        size={size}
        positionOf={screenPosition}
        labels={placeLabels(props.labels, {
          size,
          zoomFactor: model.zoomFactor,
          positionOf: screenPosition,
          hidden,
        })}
        theme={theme}
        line={line}
        hovered={hovered}
        neighbors={neighbors}
        isCrosshairShown={isKeyboard}
      >
        {props.card}
      </MapOverlay>
      <p className="visually-hidden" role="status">
        {isKeyboard && props.spoken}
      </p>
      <p id={helpId} className="visually-hidden">
        Arrow keys move, plus and minus zoom, 0 fits the map into view, N goes to the nearest point,
        Space selects the point at the centre, R begins and ends a rectangle, Escape clears the
        selection.
      </p>
    </div>
  );
}
