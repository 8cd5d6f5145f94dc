// Settings of a collection's text index: the indexed metadata paths, how text becomes terms, and the constants of BM25.
// They are fixed when the collection is created.

/** Languages with stemming, by the names of the Snowball algorithms. */
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
  /** Distinct metadata paths. The text of all of them forms the document of a row. */
  readonly fields: readonly string[];
  /** Null to disable stemming. */
  readonly language: TextLanguage | null;
  /** Words that are neither indexed nor searched, compared before stemming. */
  readonly stopWords: readonly string[];
  /** How slowly repetitions of a term stop counting; at least 0. */
  readonly k1: number;
  /** How strongly long documents are penalized, from 0 to 1. */
  readonly b: number;
}

/** The usual constants of BM25, as in Lucene. */
export const K1_DEFAULT = 1.2;
export const B_DEFAULT = 0.75;
