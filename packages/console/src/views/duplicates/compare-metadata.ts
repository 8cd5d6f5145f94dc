// What the metadata of several vectors have in common and where they differ, path by path.

import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import {
  flattenMetadata,
  isJsonObject,
  resolvePath,
} from '../../../../../src/common/metadata-path.js';
import type { JsonObject } from '../../../../../src/common/types.js';

export interface ComparedPath {
  readonly path: string;
  readonly isDifferent: boolean;
  /** One of each vector: strings as they are, other values as JSON; undefined without the path. */
  readonly values: readonly (string | undefined)[];
}

/** All paths that a vector has: first those that differ, each part in the order of their appearance. */
export function compareMetadata(documents: readonly JsonObject[]): ComparedPath[] {
  const compared = leafPaths(documents).map((path): ComparedPath => {
    const found = documents.map((document) => resolvePath(document, path));
    const texts = found.map((value) => stringifyExactJson(value));
    return {
      path,
      values: found.map((value, at) => (typeof value === 'string' ? value : texts[at])),
      isDifferent: texts.some((text) => text !== texts[0]),
    };
  });
  return [
    ...compared.filter(({ isDifferent }) => isDifferent),
    ...compared.filter(({ isDifferent }) => !isDifferent),
  ];
}

/** The paths to values that are not objects, or are empty ones. */
function leafPaths(documents: readonly JsonObject[]): string[] {
  const paths = new Set<string>();
  for (const document of documents) {
    flattenMetadata(document, (path, value) => {
      if (!isJsonObject(value) || Object.keys(value).length === 0) paths.add(path);
    });
  }
  return [...paths];
}
