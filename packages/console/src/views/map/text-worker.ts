// Keeps the texts of a map's points in a worker: finds points by them, names the dense areas of a layout, and computes
// the density around each point. Terminating the worker ends it.

import type { JsonObject } from '../../../../../src/common/types.js';
import { previewTitle } from '../vectors/preview.js';
import { type AreaLabel, areaLabels, type PointCategories } from './area-labels.js';
import { densityGrid, pointDensities } from './density.js';
import { type PointHits, searchPoints } from './point-search.js';
import { metadataTexts, PointTerms, termsOf } from './point-terms.js';

/** `rows` are parts of an export as NDJSON, in order, and `end` follows the last one. `token` returns with the answer. */
export type TextRequest =
  | { readonly kind: 'points'; readonly ids: readonly string[] }
  | { readonly kind: 'rows'; readonly bytes: Uint8Array }
  | { readonly kind: 'end' }
  | { readonly kind: 'search'; readonly token: number; readonly text: string }
  | {
      readonly kind: 'describe';
      readonly token: number;
      /** Row-major [pointCount, 2]. */
      readonly positions: Float32Array;
      readonly categories: PointCategories | undefined;
    };

export interface Description {
  /** Points per unit of area around each point, [pointCount]. */
  readonly densities: Float32Array;
  readonly labels: readonly AreaLabel[];
}

export type TextReply =
  | { readonly kind: 'read' }
  | { readonly kind: 'answer'; readonly token: number; readonly answer: PointHits | Description };

class PointTexts {
  readonly ids: readonly string[];
  readonly titles: (string | undefined)[];
  readonly bodies: (string | undefined)[];
  readonly terms: PointTerms;
  readonly #pointOf: ReadonlyMap<string, number>;
  readonly #decoder = new TextDecoder();
  /** The beginning of a line whose end has not arrived. */
  #rest = '';
  #missingCount: number;

  constructor(ids: readonly string[]) {
    this.ids = ids;
    this.titles = new Array(ids.length).fill(undefined);
    this.bodies = new Array(ids.length).fill(undefined);
    this.terms = new PointTerms(ids.length);
    this.#pointOf = new Map(ids.map((id, point) => [id, point]));
    this.#missingCount = ids.length;
  }

  get isComplete(): boolean {
    return this.#missingCount === 0;
  }

  addRows(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n');
    this.#rest = lines.pop()!;
    for (const line of lines) if (line !== '') this.#addRow(JSON.parse(line));
  }

  /** The last line of a reply that failed is an error; the texts before it are kept. */
  #addRow({ id, metadata = {} }: { id?: string; metadata?: JsonObject }): void {
    const point = id === undefined ? undefined : this.#pointOf.get(id);
    if (point === undefined) return;
    this.#missingCount--;
    const texts = metadataTexts(metadata);
    this.titles[point] = previewTitle(metadata);
    this.bodies[point] = texts.join('\n').toLowerCase();
    this.terms.set(point, termsOf(texts));
  }
}

let texts = new PointTexts([]);

addEventListener('message', ({ data }: MessageEvent<TextRequest>) => {
  if (data.kind === 'points') texts = new PointTexts(data.ids);
  else if (data.kind === 'rows') {
    if (texts.isComplete) return;
    texts.addRows(data.bytes);
    if (texts.isComplete) reply({ kind: 'read' });
  } else if (data.kind === 'end') {
    if (!texts.isComplete) reply({ kind: 'read' });
  } else if (data.kind === 'search') {
    const answer = searchPoints(texts, data.text);
    reply({ kind: 'answer', token: data.token, answer });
  } else {
    const grid = densityGrid(data.positions);
    const labels = areaLabels(grid, texts.terms, data.categories);
    const answer = { densities: pointDensities(grid), labels };
    reply({ kind: 'answer', token: data.token, answer });
  }
});

function reply(message: TextReply): void {
  postMessage(message);
}
