// Cuts texts into word pieces, the tokens of the built-in model: of all ways to write a text as a sequence of pieces, the
// most probable one, as in SentencePiece's unigram model (Kudo and Richardson, 2018), whose vocabulary the model has.

/** Marks the beginning of a word, in pieces and in texts. */
const WORD_START = '\u2581';
/** The piece for characters that are not in the vocabulary. */
const UNKNOWN = 0;
/** The first pieces of the vocabulary are for training and occur in no text. */
const RESERVED_COUNT = 6;
/** How much less probable an unknown character is than the rarest piece, as a natural logarithm. */
const UNKNOWN_PENALTY = 10;

/** The vocabulary: pieces and the natural logarithms of their probabilities, by id. */
export type Vocabulary = readonly (readonly [piece: string, score: number])[];

export interface Reading {
  /** The ids of the pieces in the order of the text; empty for a text without visible characters. */
  readonly pieces: readonly number[];
  /** The number of UTF-16 units of the text after normalization, without spaces. */
  readonly unitCount: number;
  /** How many of them are in no piece. */
  readonly unknownCount: number;
}

/** The best way to write the beginning of a text up to some position. */
interface Prefixes {
  /** Sum of the scores of its pieces; -Infinity where no piece ends. */
  readonly scores: Float64Array;
  readonly lastPieces: Int32Array;
  /** Where the last piece begins. */
  readonly starts: Int32Array;
}

export class WordPieces {
  /** Edges of a trie over UTF-16 units: the node that follows `node * 65 536 + unit`. */
  readonly #edges = new Map<number, number>();
  /** The id of the piece that ends at a node. */
  readonly #pieceAt: (number | undefined)[] = [undefined];
  readonly #scores: readonly number[];
  readonly #unknownScore: number;

  constructor(vocabulary: Vocabulary) {
    this.#scores = vocabulary.map(([, score]) => score);
    let lowest = 0;
    for (let id = RESERVED_COUNT; id < vocabulary.length; id++) {
      const [piece, score] = vocabulary[id]!;
      this.#add(piece, id);
      lowest = Math.min(lowest, score);
    }
    this.#unknownScore = lowest - UNKNOWN_PENALTY;
  }

  read(text: string): Reading {
    const words = text.normalize('NFKC').trim().replace(/\s+/g, WORD_START);
    if (words === '') return { pieces: [], unitCount: 0, unknownCount: 0 };
    const marked = WORD_START + words;
    const { starts, lastPieces } = this.#bestPrefixes(marked);
    const pieces: number[] = [];
    let unknownCount = 0;
    for (let end = marked.length; end > 0; end = starts[end]!) {
      const piece = lastPieces[end]!;
      // Neighbouring unknown characters are one piece.
      if (piece !== UNKNOWN || pieces.at(-1) !== UNKNOWN) pieces.push(piece);
      if (piece === UNKNOWN) unknownCount += end - starts[end]!;
    }
    const unitCount = marked.replaceAll(WORD_START, '').length;
    return { pieces: pieces.reverse(), unitCount, unknownCount };
  }

  #add(piece: string, id: number): void {
    let node = 0;
    for (let i = 0; i < piece.length; i++) {
      const edge = node * 65_536 + piece.charCodeAt(i);
      let next = this.#edges.get(edge);
      if (next === undefined) {
        next = this.#pieceAt.push(undefined) - 1;
        this.#edges.set(edge, next);
      }
      node = next;
    }
    this.#pieceAt[node] = id;
  }

  /** The best way to write each prefix of the text, by its length. */
  #bestPrefixes(text: string): Prefixes {
    const prefixes: Prefixes = {
      scores: new Float64Array(text.length + 1).fill(Number.NEGATIVE_INFINITY),
      lastPieces: new Int32Array(text.length + 1),
      starts: new Int32Array(text.length + 1),
    };
    prefixes.scores[0] = 0;
    for (let start = 0; start < text.length; start++) {
      if (!this.#extend(prefixes, text, start)) {
        offer(prefixes, { start, end: start + 1, piece: UNKNOWN, score: this.#unknownScore });
      }
    }
    return prefixes;
  }

  /** Adds the pieces that begin at `start`. Returns whether one of them is a single unit. */
  #extend(prefixes: Prefixes, text: string, start: number): boolean {
    let hasSingle = false;
    let node: number | undefined = 0;
    for (let end = start + 1; end <= text.length; end++) {
      node = this.#edges.get(node * 65_536 + text.charCodeAt(end - 1));
      if (node === undefined) break;
      const piece = this.#pieceAt[node];
      if (piece === undefined) continue;
      hasSingle ||= end === start + 1;
      offer(prefixes, { start, end, piece, score: this.#scores[piece]! });
    }
    return hasSingle;
  }
}

/** Prefers the shorter last piece when scores are equal, since starts come in ascending order. */
function offer(
  { scores, lastPieces, starts }: Prefixes,
  { start, end, piece, score }: { start: number; end: number; piece: number; score: number },
): void {
  const total = scores[start]! + score;
  if (total < scores[end]!) return;
  scores[end] = total;
  lastPieces[end] = piece;
  starts[end] = start;
}
