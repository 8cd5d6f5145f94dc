// A loaded map: toolbar, search, canvas, legend and selection.

import type { CollectionRecord } from '@sagitta/client';
import { useEffect, useMemo, useState } from 'react';
import { queryClient, useFoundPaths } from '../../api/queries.js';
import { useMembers, useStore } from '../../api/store.js';
import { formatCount } from '../../ui/format.js';
import { Progress } from '../../ui/progress.js';
import { ErrorMessage } from '../../ui/states.js';
import styles from './map.module.css';
import { MapLegend } from './map-legend.js';
import { MapPicture } from './map-picture.js';
import { MapSearch, useHits } from './map-search.js';
import { MapSelection } from './map-selection.js';
import { LegendSkeleton } from './map-skeleton.js';
import {
  hiddenEntriesOf,
  type Layout,
  type MapData,
  type MapDraft,
  mapDraftOf,
  mapSelectionOf,
  mapStateOf,
  withoutPoints,
} from './map-state.js';
import { MapToolbar } from './map-toolbar.js';
import type { MapActions } from './use-map.js';
import type { Tool } from './use-map-gestures.js';
import { type PointColours, useColourPath, usePointColours } from './use-point-colours.js';
import { useDescription, usePointTexts } from './use-point-texts.js';

interface ReadyMapProps {
  readonly collection: CollectionRecord;
  readonly data: MapData;
  readonly layout: Layout;
  readonly actions: MapActions;
}

export function ReadyMap({ collection, data, layout, actions }: ReadyMapProps) {
  const [draft, change] = useMembers(mapDraftOf(collection.id));
  const [tool, setTool] = useState<Tool>('pan');
  const [fitCount, setFitCount] = useState(0);
  const [searchText, setSearchText] = useState('');
  const [destination, setDestination] = useState<{ readonly point: number }>();
  const { data: found = [] } = useFoundPaths(collection.id);
  const path = useColourPath(collection);
  const colours = usePointColours(collection, data, path);
  const positions = shownPositions(data, layout, draft.layout);
  const isMoving = layout.kind === 'running' && draft.layout === 'umap';
  const texts = usePointTexts(collection, data);
  const description = useDescription(texts, { positions, colours: colours.colours, isMoving });
  const hits = useHits(texts, searchText);
  const select = mapSelectionOf(collection.id).set;
  useAutomaticLayout(draft.layout, data, layout, actions);
  return (
    <>
      <div className={styles.toolbar}>
        <MapToolbar
          draft={draft}
          layout={layout}
          onLayOut={actions.layOut}
          paths={found.filter(({ types, count }) => types.object < count).map((one) => one.path)}
          colourPath={path}
          onChange={change}
          onColourPath={(colourPath) => {
            hiddenEntriesOf(collection.id).set(new Set());
            change({ colourPath });
          }}
          tool={tool}
          onTool={setTool}
          onFit={() => setFitCount(fitCount + 1)}
        >
          <MapSearch
            data={data}
            hits={hits}
            text={searchText}
            onText={setSearchText}
            onGo={(point) => {
              setDestination({ point });
              select(new Set([point]));
            }}
            onSelectAll={() => select(new Set(hits.points))}
          />
        </MapToolbar>
        <SampleNote total={collection.vector_count} data={data} layoutName={draft.layout} />
      </div>
      {layout.kind === 'failed' && <ErrorMessage error={layout.error} onRetry={actions.layOut} />}
      {colours.error !== null && <ErrorMessage error={colours.error} />}
      <div className={styles.main}>
        <div className={styles.canvasFrame}>
          <MapPicture
            collection={collection}
            data={data}
            positions={positions}
            isMoving={isMoving}
            description={description}
            found={hits.points}
            destination={destination}
            colours={colours}
            colourPath={path}
            areLabelsShown={draft.areLabelsShown}
            tool={tool}
            fitKey={`${fitCount} ${draft.layout}`}
          />
          {draft.layout === 'umap' && <LayoutProgress layout={layout} onStop={actions.stop} />}
        </div>
        <Side collection={collection} data={data} colours={colours} path={path} actions={actions} />
      </div>
    </>
  );
}

interface LayoutProgressProps {
  readonly layout: Layout;
  readonly onStop: () => void;
}

/** Above the canvas, so that its size does not change. */
function LayoutProgress({ layout, onStop }: LayoutProgressProps) {
  if (layout.kind !== 'neighbors' && layout.kind !== 'running') return null;
  const label = layout.kind === 'neighbors' ? 'Finding neighbours' : 'Laying out';
  return (
    <div className={styles.layoutProgress}>
      <Progress label={label} progress={layout.progress} onStop={onStop} />
    </div>
  );
}

/** Starts UMAP automatically for each new sample. */
function useAutomaticLayout(
  name: MapDraft['layout'],
  data: MapData,
  layout: Layout,
  { layOut }: MapActions,
): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: a stopped layout must not start again
  useEffect(() => {
    if (name === 'umap' && layout.kind === 'none') layOut();
  }, [name, data]);
}

function shownPositions(data: MapData, layout: Layout, name: MapDraft['layout']): Float32Array {
  if (name === 'pca' || !('positions' in layout)) return data.components;
  // People who prefer no motion see only the final layout.
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
  return isStill && layout.kind === 'running' ? data.components : layout.positions;
}

interface SampleNoteProps {
  readonly total: number;
  readonly data: MapData;
  readonly layoutName: MapDraft['layout'];
}

function SampleNote({ total, data, layoutName }: SampleNoteProps) {
  const count = data.ids.length;
  const share = data.varianceRatios.reduce((sum, ratio) => sum + ratio, 0);
  const variance = layoutName === 'pca' ? `, ${Math.round(share * 100)} % of the variance` : '';
  return (
    <p className={styles.sampleNote} role="status">
      {count < total && `${formatCount(count)} of `}
      {formatCount(total)} vectors{variance}
    </p>
  );
}

interface SideProps {
  readonly collection: CollectionRecord;
  readonly data: MapData;
  readonly colours: PointColours;
  readonly path: string;
  readonly actions: MapActions;
}

function Side({ collection, data, colours: shown, path, actions }: SideProps) {
  const { colours, isLoading } = shown;
  const { id } = collection;
  const selectionStore = mapSelectionOf(id);
  const selection = useStore(selectionStore);
  const hiddenStore = hiddenEntriesOf(id);
  const hidden = useStore(hiddenStore);
  const ids = useMemo(
    () => [...selection].sort((a, b) => a - b).map((point) => data.ids[point]!),
    [selection, data],
  );
  return (
    <aside className={styles.side} aria-label="Legend and selection">
      {isLoading && <LegendSkeleton collection={collection} path={path} />}
      {colours !== undefined && (
        <MapLegend
          path={path}
          colours={colours}
          hidden={hidden}
          onHide={hiddenStore.set}
          onSelect={(entry) => selectionStore.set(pointsOf(colours.entries, entry))}
        />
      )}
      {path === '' && ids.length === 0 && (
        <p className={styles.note}>
          All points have one colour. “Colour by” shows the values of a metadata path.
        </p>
      )}
      {ids.length > 0 && (
        <MapSelection
          collection={collection}
          using={data.request.using}
          ids={ids}
          colourPath={path}
          onClear={() => selectionStore.set(new Set())}
          onTagged={() => {
            // Categories may get different entries.
            hiddenStore.set(new Set());
            void queryClient.invalidateQueries({ queryKey: ['collection', id] });
          }}
          onDeleted={(gone) => {
            actions.stop();
            removePoints(id, new Set(gone));
          }}
        />
      )}
    </aside>
  );
}

function pointsOf(entries: Uint8Array, entry: number): ReadonlySet<number> {
  const points = new Set<number>();
  for (let point = 0; point < entries.length; point++) {
    if (entries[point] === entry) points.add(point);
  }
  return points;
}

function removePoints(id: string, gone: ReadonlySet<string>): void {
  const store = mapStateOf(id);
  const state = store.get();
  mapSelectionOf(id).set(new Set());
  if (state.kind === 'ready') store.set(withoutPoints(state, gone));
}
