// Columns for conditions on words: for every `$match` of a filter, which rows of a segment contain the words,
// according to the text index.

import { type Bitmap, nextSetBit } from '../../common/bitmap.js';
import { KIND, type MetadataColumn, type MetadataView } from '../../common/columns.js';
import { SagittaError } from '../../common/errors.js';
import type { TextSettings } from '../../common/text-settings.js';
import { EMPTY_COLUMN } from '../../filter/column-plans.js';
import { type FilterNode, filterTests } from '../../filter/filter-node.js';
import type { TextIndexes } from '../../inverted/text-index.js';
import { matchTerms } from '../../inverted/text-match.js';
import { termsOf } from '../../inverted/text-search.js';
import type { WordsColumns } from './filter-cache.js';

/** @param settingsOf returns the text settings of the collection of a segment; undefined if it was deleted. */
export function createWordsColumns(
  textIndexes: TextIndexes,
  settingsOf: (segmentKey: string) => TextSettings | undefined,
): WordsColumns {
  return {
    async addColumns(node, segment, view): Promise<MetadataView> {
      const settings = settingsOf(segment.key);
      // A filter on words is valid only for a collection with text, so that the collection must have been deleted.
      if (settings === undefined) throw deletedMeanwhile();
      const { rowCount } = view;
      const indexed = { segment, metadata: view, rowCount };
      const runs = await textIndexes.runsOf(indexed, settings);
      const columns = new Map(view.columns);
      for (const [path, words] of wordsOf(node)) {
        const matching = matchTerms({ runs, rowCount }, termsOf(words, true, settings));
        columns.set(path, columnOf(matching));
      }
      return { ...view, columns };
    },
  };
}

/** The words of each condition by its path. */
function wordsOf(node: FilterNode): ReadonlyMap<string, string> {
  const words = new Map<string, string>();
  for (const test of filterTests(node)) {
    if (test.operator === '$match') words.set(test.path, test.operand);
  }
  return words;
}

/** A column that is true for the rows in the bitmap and missing for the others. */
function columnOf(matching: Bitmap): MetadataColumn {
  const kinds = new Uint8Array(new SharedArrayBuffer(matching.length));
  for (let row = nextSetBit(matching, 0); row >= 0; row = nextSetBit(matching, row + 1)) {
    kinds[row] = KIND.true;
  }
  return { ...EMPTY_COLUMN, kinds };
}

function deletedMeanwhile(): SagittaError {
  return new SagittaError(
    'collection_not_found',
    'The collection was deleted while the request was answered.',
  );
}
