// The state of a collection's map: settings, projected sample and layout. It survives a visit to another view,
// which stops requests and the worker.

import type { JsonObject } from '@sagitta/client';
import { createStores } from '../../api/store.js';
import type { JobProgress } from '../../ui/remaining-time.js';

/** The form; texts are the user's input. */
export interface MapDraft {
  /** Empty for the unnamed vector; absent until the user chooses a vector. */
  readonly using?: string;
  readonly sampleText: string;
  readonly seedText: string;
  readonly neighborsText: string;
  readonly filter: JsonObject | undefined;
  readonly layout: 'umap' | 'pca';
  /** The metadata path that colours the points: empty for none, absent until the user chooses one. */
  readonly colourPath?: string;
  readonly areLabelsShown: boolean;
}

export interface MapRequest {
  readonly using: string;
  readonly sample: number;
  readonly seed: number;
  readonly neighbors: number;
  readonly filter: JsonObject | undefined;
}

/** A sample of the vectors, in insertion order. */
export interface MapData {
  readonly request: MapRequest;
  /** Sequence of the snapshot; the same request may later return a different sample. */
  readonly sequence: number;
  readonly ids: readonly string[];
  /** The principal components, row-major [ids.length, 2], scaled to the extent of a layout. */
  readonly components: Float32Array;
  /** The share of the variance that each component explains. */
  readonly varianceRatios: readonly number[];
}

export type Layout =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'neighbors';
      /** Counts the points whose neighbours have arrived; undefined before the first ones. */
      readonly progress: JobProgress | undefined;
    }
  | {
      /** `running` until the last epoch, `stopped` if it was ended earlier. */
      readonly kind: 'running' | 'stopped' | 'done';
      /** Row-major [ids.length, 2]. */
      readonly positions: Float32Array;
      /** Counts epochs. */
      readonly progress: JobProgress;
    }
  | { readonly kind: 'failed'; readonly error: unknown };

export type MapState =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'loading';
      /** Counts the points that have arrived; undefined before the first ones. */
      readonly progress: JobProgress | undefined;
    }
  | { readonly kind: 'failed'; readonly error: unknown }
  | ReadyState;

export interface ReadyState {
  readonly kind: 'ready';
  readonly data: MapData;
  readonly layout: Layout;
}

const SAMPLE_MAX = 200_000;
const NEIGHBORS_MAX = 30;

export const mapDraftOf = createStores<MapDraft>({
  sampleText: '20000',
  seedText: '0',
  neighborsText: '15',
  filter: undefined,
  layout: 'umap',
  areLabelsShown: true,
});
export const mapStateOf = createStores<MapState>({ kind: 'none' });
/** Indexes of points. */
export const mapSelectionOf = createStores<ReadonlySet<number>>(new Set());
/** Legend entries that are hidden. */
export const hiddenEntriesOf = createStores<ReadonlySet<number>>(new Set());

/** Error messages about the numbers of the form, by field. */
export function draftErrors(
  draft: MapDraft,
): Partial<Record<'sample' | 'seed' | 'neighbors', string>> {
  return {
    ...numberError('sample', draft.sampleText, 1, SAMPLE_MAX),
    ...numberError('seed', draft.seedText, 0, 2 ** 32 - 1),
    ...numberError('neighbors', draft.neighborsText, 2, NEIGHBORS_MAX),
  };
}

function numberError(name: string, text: string, min: number, max: number) {
  const value = Number(text);
  const isValid = text.trim() !== '' && Number.isInteger(value) && value >= min && value <= max;
  return isValid ? {} : { [name]: `Expected a whole number from ${min} to ${max}.` };
}

/** The request for a draft without errors. */
export function requestOf(draft: MapDraft, using: string): MapRequest {
  return {
    using,
    sample: Number(draft.sampleText),
    seed: Number(draft.seedText),
    neighbors: Number(draft.neighborsText),
    filter: draft.filter,
  };
}

/** Half the initial width of a layout, so that the points do not jump when a layout starts. */
const EXTENT = 10;

/** @param coordinates row-major [count, 2] */
export function scaleComponents(coordinates: Float32Array): Float32Array {
  const extent = coordinates.reduce((max, value) => Math.max(max, Math.abs(value)), 0) || 1;
  return coordinates.map((value) => (value / extent) * EXTENT);
}

/** Removes the points of deleted vectors. A running layout is stopped, because it would bring them back. */
export function withoutPoints({ data, layout }: ReadyState, gone: ReadonlySet<string>): ReadyState {
  const kept = [...data.ids.keys()].filter((point) => !gone.has(data.ids[point]!));
  const rowsOf = (positions: Float32Array) =>
    Float32Array.from(kept.flatMap((point) => [positions[2 * point]!, positions[2 * point + 1]!]));
  return {
    kind: 'ready',
    data: {
      ...data,
      ids: kept.map((point) => data.ids[point]!),
      components: rowsOf(data.components),
    },
    layout:
      'positions' in layout
        ? {
            ...layout,
            kind: layout.kind === 'done' ? 'done' : 'stopped',
            positions: rowsOf(layout.positions),
          }
        : { kind: 'none' },
  };
}
