// What the text index of a collection is made of: the metadata paths that are indexed, how their text
// becomes terms, and the constants of BM25. Fixed when the collection is created.

/** The languages whose words are stemmed, by the names of the Snowball algorithms. */
export const TEXT_LANGUAGES = [
  'arabic',
  'armenian',
  'basque',
  'catalan',
  'czech',
  'danish',
  'dutch',
  'english',
  'finnish',
  'french',
  'german',
  'hungarian',
  'irish',
  'italian',
  'norwegian',
  'portuguese',
  'romanian',
  'russian',
  'slovene',
  'spanish',
  'swedish',
  'tamil',
  'turkish',
] as const;
export type TextLanguage = (typeof TEXT_LANGUAGES)[number];

export interface TextSettings {
  /** Metadata paths, distinct. A row's document is the text of all of them. */
  readonly fields: readonly string[];
  /** Null for words that are not stemmed. */
  readonly language: TextLanguage | null;
  /** Words that are neither indexed nor searched, compared before stemming. */
  readonly stopWords: readonly string[];
  /** How soon repetitions of a term stop counting; at least 0. */
  readonly k1: number;
  /** How much long documents are marked down: 0 to 1. */
  readonly b: number;
}

/** The usual constants of BM25, as in Lucene. */
export const K1_DEFAULT = 1.2;
export const B_DEFAULT = 0.75;
