// Turns text into terms: NFKC, word boundaries as in Unicode (UAX 29), case folding, stop words and stemming.
// Documents and queries go through the same analyzer. A term is a byte string: its UTF-8 bytes stored as
// the characters 0 to 255, so that comparing two terms compares their bytes.

import { foldCase } from '../common/fold-case.js';
import { latePackage } from '../common/late-package.js';
import type { TextLanguage, TextSettings } from '../common/text-settings.js';

/** The settings that determine the terms of a text. */
type Analysis = Pick<TextSettings, 'language' | 'stopWords'>;

/** Natural text repeats its words: 65,536 pieces are a large vocabulary and fit in a few megabytes. */
const PIECES_KEPT_MAX = 65_536;
/** Analyzers that a thread caches, one per combination of settings. */
const ANALYZERS_KEPT_MAX = 16;

const analyzers = new Map<string, Analyzer>();

/** Returns the analyzer for these settings. Each thread creates it once. */
export function analyzerOf({ language, stopWords }: Analysis): Analyzer {
  const key = JSON.stringify([language, stopWords]);
  let analyzer = analyzers.get(key);
  if (analyzer === undefined) {
    if (analyzers.size >= ANALYZERS_KEPT_MAX) analyzers.clear();
    analyzer = new Analyzer({ language, stopWords });
    analyzers.set(key, analyzer);
  }
  return analyzer;
}

class Analyzer {
  readonly #stopWords: ReadonlySet<string>;
  readonly #stem: (word: string) => string;
  /** Terms of the pieces analysed so far. */
  readonly #termsOfPiece = new Map<string, readonly string[]>();

  constructor({ language, stopWords }: Analysis) {
    this.#stopWords = new Set(stopWords.flatMap((word) => wordsOf(word.normalize('NFKC'))));
    this.#stem = language === null ? (word) => word : stemmerOf(language);
  }

  /** Calls `visit` with every term of the text, in order. */
  visitTerms(text: string, visit: (term: string) => void): void {
    // By the rules of Unicode, white space always separates words, so no word spans two pieces.
    for (const piece of text.normalize('NFKC').split(WHITE_SPACE)) {
      if (piece === '') continue;
      for (const term of this.#analyze(piece)) visit(term);
    }
  }

  #analyze(piece: string): readonly string[] {
    let terms = this.#termsOfPiece.get(piece);
    if (terms === undefined) {
      terms = wordsOf(piece)
        .filter((word) => !this.#stopWords.has(word))
        .map((word) => toByteString(this.#stem(word)));
      if (this.#termsOfPiece.size >= PIECES_KEPT_MAX) this.#termsOfPiece.clear();
      this.#termsOfPiece.set(piece, terms);
    }
    return terms;
  }
}

const WHITE_SPACE = /\s+/;

let segmenter: Intl.Segmenter | undefined;

/** Created for the first text that is not ASCII, because its rules take 30 ms to load. */
function segmenterOfWords(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'word' });
  return segmenter;
}

/** Splits a piece without white space into case-folded words. */
function wordsOf(piece: string): string[] {
  return splitWords(piece).map(foldCase);
}

/** Splits a piece without white space into words. ASCII has its own regular expression, which is 40 times as fast. */
export function splitWords(piece: string): string[] {
  if (NOT_ASCII.test(piece)) {
    return Array.from(segmenterOfWords().segment(piece)).flatMap(({ segment, isWordLike }) =>
      isWordLike === true && !ONLY_JOINERS.test(segment) ? [segment] : [],
    );
  }
  return piece.match(ASCII_WORDS) ?? [];
}

const ONLY_JOINERS = /^_+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const NOT_ASCII = /[^\x00-\x7f]/;
/**
 * Letters, digits and "_", at least one of them not "_". A single ".", ":" or "'" joins letters, and a
 * single ".", ",", ";" or "'" joins digits.
 */
const ASCII_WORDS =
  /(?=_*[A-Za-z0-9])\w+(?:(?:(?<=[A-Za-z])[.:'](?=[A-Za-z])|(?<=[0-9])[.,;'](?=[0-9]))\w+)*/g;

function toByteString(word: string): string {
  return NOT_ASCII.test(word) ? Buffer.from(word).toString('latin1') : word;
}

/** Loaded on first use, because it takes 10 ms and some megabytes in each thread. */
const snowball = latePackage<typeof import('snowball-stemmers')>('snowball-stemmers');

function stemmerOf(language: TextLanguage): (word: string) => string {
  const stemmer = snowball().newStemmer(language);
  return (word) => stemmer.stem(word);
}
