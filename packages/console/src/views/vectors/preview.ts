// The preview of a vector: a picture from its metadata or values, and a text. Pictures come from the same origin or
// are embedded in the metadata; no request is ever sent to another host.

import type { CollectionRecord, FoundPath } from '@sagitta/client';
import {
  isJsonNumber,
  numberText,
  stringifyExactJson,
} from '../../../../../src/common/exact-json.js';
import { resolvePath } from '../../../../../src/common/metadata-path.js';
import type { Json, JsonObject } from '../../../../../src/common/types.js';

/** The members of a vector that can be shown; matches and stored vectors have them. */
export interface ShownVector {
  readonly id: string;
  readonly metadata?: JsonObject;
  readonly values?: ArrayLike<number>;
}

/** The size in pixels of a grey picture made of the values. */
export interface PictureShape {
  readonly width: number;
  readonly height: number;
}

/** The shape from the collection's label `preview`, such as `values:8x8`, if it fits the dimension. */
export function pictureShape({ labels, dimension }: CollectionRecord): PictureShape | undefined {
  const found = /^values:(\d{1,4})x(\d{1,4})$/.exec(labels.preview ?? '');
  if (found === null) return undefined;
  const [width, height] = [Number(found[1]), Number(found[2])];
  return width * height === dimension ? { width, height } : undefined;
}

/** The RGBA pixels of a grey picture, row-major, scaled from the lowest to the highest value. */
export function greyPixels(values: ArrayLike<number>): Uint8ClampedArray<ArrayBuffer> {
  let min = Infinity;
  let max = -Infinity;
  for (let i = 0; i < values.length; i++) {
    min = Math.min(min, values[i]!);
    max = Math.max(max, values[i]!);
  }
  const scale = max > min ? 255 / (max - min) : 0;
  const pixels = new Uint8ClampedArray(values.length * 4);
  for (let i = 0; i < values.length; i++) {
    const grey = (values[i]! - min) * scale;
    pixels.set([grey, grey, grey, 255], i * 4);
  }
  return pixels;
}

const PICTURE_DATA = /^data:image\/(png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=]+$/;
const PICTURE_NAME = /\.(png|jpe?g|gif|webp|avif|svg)(\?[^#]*)?$/i;

/** The URL of a picture, if the text is one that the page may load. */
export function pictureUrl(text: string, origin: string): string | undefined {
  if (text.startsWith('data:')) return PICTURE_DATA.test(text) ? text : undefined;
  const isAddress = text.startsWith('/') || text.startsWith(`${origin}/`);
  if (!isAddress || !PICTURE_NAME.test(text)) return undefined;
  // `//host/…` and `/\host/…` point to other hosts.
  const url = URL.canParse(text, origin) ? new URL(text, origin) : undefined;
  return url?.origin === origin ? url.href : undefined;
}

/** The first picture in the metadata. */
export function findPictureUrl(metadata: JsonObject | undefined, origin: string) {
  for (const text of stringsIn(metadata ?? {})) {
    const url = pictureUrl(text, origin);
    if (url !== undefined) return url;
  }
  return undefined;
}

const TEXT_CHARACTERS_MIN = 12;

/** The most informative text: the indexed fields or, without them, the longest string that reads like prose. */
export function previewText(
  metadata: JsonObject | undefined,
  { text }: CollectionRecord,
): string | undefined {
  if (metadata === undefined) return undefined;
  const indexed = (text?.fields ?? []).flatMap((path) => [
    ...stringsIn(resolvePath(metadata, path) ?? {}),
  ]);
  // The title is shown beside the text.
  const title = previewTitle(metadata);
  const others = indexed.filter((one) => one !== title);
  if (indexed.length > 0) return (others.length > 0 ? others : indexed).join(' · ');
  const texts = [...stringsIn(metadata)].filter(
    (one) => one.length >= TEXT_CHARACTERS_MIN && !one.startsWith('data:') && /\s/.test(one),
  );
  return texts.sort((a, b) => b.length - a.length)[0];
}

const TITLE_PATHS = ['title', 'name', 'lemma', 'label', 'headline', 'subject'];

/** The values of a path with at least this share of distinct ones tell vectors apart. */
const DISTINCT_SHARE_MIN = 0.9;

/** The path whose values name vectors: a usual one or, without it, the shortest path of mostly distinct strings. */
export function titlePathOf(paths: readonly FoundPath[]): string | undefined {
  const usual = TITLE_PATHS.find((title) =>
    paths.some(({ path, types }) => path === title && types.string + types.number > 0),
  );
  const distinct = paths.filter(
    ({ types, count, distinct_count, is_distinct_exact }) =>
      types.string > 0 &&
      types.string + types.null === count &&
      (!is_distinct_exact || distinct_count >= DISTINCT_SHARE_MIN * count),
  );
  return usual ?? distinct.map(({ path }) => path).sort((a, b) => a.length - b.length)[0];
}

/** A short name from the metadata, because ids are often not informative; `titlePath` is tried first. */
export function previewTitle(
  metadata: JsonObject | undefined,
  titlePath?: string,
): string | undefined {
  const own = titlePath === undefined ? undefined : resolvePath(metadata ?? {}, titlePath);
  for (const value of [own, ...TITLE_PATHS.map((path) => metadata?.[path])]) {
    if (typeof value === 'string' && value !== '') return value;
    if (isJsonNumber(value)) return numberText(value);
  }
  return undefined;
}

/** A value on one line: strings unchanged, everything else as JSON. */
export function formatValue(value: Json | undefined): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) {
    return value.join(', ');
  }
  return stringifyExactJson(value);
}

function* stringsIn(value: Json): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) yield* stringsIn(inner);
  }
}
