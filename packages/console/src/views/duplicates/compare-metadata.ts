// Compares the metadata of several vectors, path by path.

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
  /** One value per vector: strings unchanged, other values as JSON; undefined if the vector lacks the path. */
  readonly values: readonly (string | undefined)[];
}

/** All paths of the vectors: those that differ first, and otherwise in order of appearance. */
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

/** The paths to values other than objects, and to empty objects. */
function leafPaths(documents: readonly JsonObject[]): string[] {
  const paths = new Set<string>();
  for (const document of documents) {
    flattenMetadata(document, (path, value) => {
      if (!isJsonObject(value) || Object.keys(value).length === 0) paths.add(path);
    });
  }
  return [...paths];
}
