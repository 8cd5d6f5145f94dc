// The columns of tables of vectors: id, metadata paths, picture and values.

import type { CollectionRecord, FoundPath } from '@sagitta/client';
import type { ReactNode } from 'react';
import { numberText } from '../../../../../src/common/exact-json.js';
import { resolvePath } from '../../../../../src/common/metadata-path.js';
import { formatValue, type ShownVector } from './preview.js';
import { ValuesStrip } from './values-strip.js';
import { VectorPicture } from './vector-preview.js';

export interface VectorTableColumn {
  /** Identifies the column; for metadata, the path. */
  readonly key: string;
  readonly label: string;
  /** The initial width in pixels. */
  readonly width: number;
  readonly isNumber?: boolean;
  /** Whether the column takes a share of the free width. */
  readonly isGrowing?: boolean;
  readonly isSortable?: boolean;
  readonly render: (row: ShownVector, index: number) => ReactNode;
}

export const ID_COLUMN: VectorTableColumn = {
  key: '$id',
  label: 'id',
  width: 180,
  isSortable: true,
  render: ({ id }) => <bdi title={id}>{id}</bdi>,
};

export const VALUES_COLUMN: VectorTableColumn = {
  key: '$values',
  label: 'values',
  width: 160,
  render: ({ values }) => values && values.length > 0 && <ValuesStrip values={values} />,
};

/** The width fits the values of the rows in `sample`. */
export function metadataColumn(
  path: string,
  found?: FoundPath,
  sample: readonly ShownVector[] = [],
): VectorTableColumn {
  const isNumber =
    found !== undefined && found.types.number > 0 && found.types.number === found.count;
  const textOf = ({ metadata }: ShownVector) =>
    metadata === undefined ? '' : formatValue(resolvePath(metadata, path));
  const width = fittingWidth([path, ...sample.map(textOf), ...extremesOf(found)]);
  return {
    key: path,
    label: path,
    width,
    isNumber,
    isGrowing: width === FITTING_WIDTH_MAX,
    isSortable: true,
    render: (row) => {
      const text = textOf(row);
      return (
        <bdi title={text.length > 24 ? text : undefined}>{text.slice(0, CELL_CHARACTERS_MAX)}</bdi>
      );
    },
  };
}

/** The minimum and maximum, which include the longest numbers. */
function extremesOf(found: FoundPath | undefined): string[] {
  return [found?.min, found?.max].flatMap((value) =>
    value === undefined ? [] : numberText(value),
  );
}

const CHARACTER_WIDTH = 8.4;
const PADDING_WIDTH = 36;
const FITTING_WIDTH_MAX = 340;

/** The width in pixels that fits the texts, up to a limit. */
export function fittingWidth(texts: readonly string[]): number {
  const longest = texts.reduce((length, text) => Math.max(length, text.length), 0);
  return Math.min(FITTING_WIDTH_MAX, Math.ceil(longest * CHARACTER_WIDTH) + PADDING_WIDTH);
}

/** Columns are never wider, while metadata may be 40 kB long. */
const CELL_CHARACTERS_MAX = 300;

export function pictureColumn(collection: CollectionRecord): VectorTableColumn {
  return {
    key: '$picture',
    label: 'picture',
    width: 72,
    render: (row) => <VectorPicture collection={collection} vector={row} />,
  };
}
