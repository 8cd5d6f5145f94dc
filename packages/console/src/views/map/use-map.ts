// Loads the projection of a sample of the collection, then the neighbours, and starts a worker for the layout.

import type { CollectionRecord, ProjectionRequest } from '@sagitta/client';
import { useCallback, useEffect, useRef } from 'react';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import type { JobProgress } from '../../ui/remaining-time.js';
import {
  hiddenEntriesOf,
  type Layout,
  type MapData,
  type MapRequest,
  mapSelectionOf,
  mapStateOf,
  scaleComponents,
} from './map-state.js';
import type { UmapJob, UmapUpdate } from './umap-worker.js';

export interface MapActions {
  readonly load: (request: MapRequest) => void;
  /** Starts the layout of the loaded sample. */
  readonly layOut: () => void;
  readonly stop: () => void;
}

export function useMap({ id }: CollectionRecord): MapActions {
  const { client } = useStore(session);
  const controller = useRef<AbortController>(undefined);
  const worker = useRef<Worker>(undefined);
  const store = mapStateOf(id);

  const stop = useCallback(() => {
    controller.current?.abort();
    worker.current?.terminate();
    worker.current = undefined;
    const state = store.get();
    if (state.kind === 'loading') store.set({ kind: 'none' });
    if (state.kind === 'ready') store.set({ ...state, layout: stopped(state.layout) });
  }, [store]);
  useEffect(() => stop, [stop]);

  const begin = useCallback(() => {
    stop();
    controller.current = new AbortController();
    return controller.current.signal;
  }, [stop]);

  const load = useCallback(
    async (request: MapRequest) => {
      const signal = begin();
      const onProgress = reportShares((progress) => store.set({ kind: 'loading', progress }));
      store.set({ kind: 'loading', progress: undefined });
      try {
        const options = { signal, onProgress };
        const reply = await client.collection(id).project(wireRequest(request), options);
        clearMarks(id);
        store.set({ kind: 'ready', data: mapData(request, reply), layout: { kind: 'none' } });
      } catch (error) {
        if (!signal.aborted) store.set({ kind: 'failed', error });
      }
    },
    [client, id, store, begin],
  );

  const layOut = useCallback(async () => {
    const signal = begin();
    const state = store.get();
    if (state.kind !== 'ready') return;
    const { request } = state.data;
    const wait = (progress: JobProgress | undefined) =>
      store.set({ ...state, layout: { kind: 'neighbors', progress } });
    wait(undefined);
    try {
      const wire = { ...wireRequest(request), neighbors: request.neighbors };
      const options = { signal, onProgress: reportShares(wait) };
      const reply = await client.collection(id).project(wire, options);
      const { starts, rows, distances } = reply.neighbors!;
      // Vectors may have been written since the first request, so the map shows the newer sample.
      const data = isSameSample(state.data, reply.ids) ? state.data : mapData(request, reply);
      if (data !== state.data) clearMarks(id);
      const job = { graph: { starts, neighbors: rows, distances }, seed: request.seed };
      worker.current = startWorker({ ...job, start: data.components }, (layout) =>
        store.set({ kind: 'ready', data, layout }),
      );
    } catch (error) {
      if (!signal.aborted) store.set({ ...state, layout: { kind: 'failed', error } });
    }
  }, [client, id, store, begin]);

  return { load, layOut, stop };
}

/** Clears the state that refers to points and entries of the previous sample. */
function clearMarks(id: string): void {
  mapSelectionOf(id).set(new Set());
  hiddenEntriesOf(id).set(new Set());
}

/** Reports the rows of a reply once per share of them; a report per row would draw the page too often. */
const REPORTS = 100;

function reportShares(report: (progress: JobProgress) => void) {
  let startMs: number | undefined;
  let reportedCount = 0;
  return (doneCount: number, totalCount: number) => {
    startMs ??= performance.now();
    const isDue = doneCount - reportedCount >= totalCount / REPORTS;
    if (doneCount > 0 && doneCount < totalCount && !isDue) return;
    reportedCount = doneCount;
    report({ doneCount, totalCount, elapsedMs: performance.now() - startMs });
  };
}

function stopped(layout: Layout): Layout {
  if (layout.kind === 'running') return { ...layout, kind: 'stopped' };
  return layout.kind === 'neighbors' ? { kind: 'none' } : layout;
}

function wireRequest({ using, sample, seed, filter }: MapRequest): ProjectionRequest {
  return {
    sample,
    seed,
    dimensions: 2,
    ...(using !== '' && { using }),
    ...(filter !== undefined && { filter }),
  };
}

interface Projected {
  readonly sequence: number;
  readonly ids: readonly string[];
  readonly coordinates: Float32Array;
  readonly varianceRatios: readonly number[];
}

function mapData(request: MapRequest, projected: Projected): MapData {
  const { sequence, ids, coordinates, varianceRatios } = projected;
  const components = scaleComponents(coordinates);
  return { request, sequence, ids, components, varianceRatios };
}

function isSameSample({ ids }: MapData, others: readonly string[]): boolean {
  return ids.length === others.length && ids.every((id, at) => id === others[at]);
}

function startWorker(job: UmapJob, onUpdate: (layout: Layout) => void): Worker {
  const startMs = performance.now();
  const worker = new Worker(new URL('./umap-worker.ts', import.meta.url), { type: 'module' });
  worker.addEventListener('message', ({ data }: MessageEvent<UmapUpdate>) => {
    const { positions, epoch, epochCount } = data;
    const elapsedMs = performance.now() - startMs;
    const progress = { doneCount: epoch, totalCount: epochCount, elapsedMs };
    onUpdate({ kind: epoch < epochCount ? 'running' : 'done', positions, progress });
  });
  worker.addEventListener('error', ({ message }) => {
    onUpdate({ kind: 'failed', error: new Error(`the layout failed: ${message}`) });
  });
  worker.postMessage(job);
  return worker;
}
