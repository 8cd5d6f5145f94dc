// Measures text in columns of a terminal: wide characters (Chinese, Japanese, Korean, emoji) take two columns,
// combining marks none.

const GRAPHEMES = new Intl.Segmenter();
const ASCII = /^[\x20-\x7e]*$/;
/** Characters whose East Asian Width in Unicode is "wide" or "fullwidth", by script and block. */
const WIDE =
  /^(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Tangut}\p{Script=Nushu}\p{Emoji_Presentation}\u2329\u232a\u3000-\u303e\u30fb\u30fc\u31c0-\u33ff\uff01-\uff60\uffe0-\uffe6])/u;
/** Half-width forms of characters from wide scripts. */
const HALF_WIDTH = /^[\uff61-\uffdc]/u;
/** Combining marks without a base character, as at the beginning of a text. */
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;
/** The variation selector that requests emoji presentation. */
const PICTURE = /\ufe0f/u;

export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of GRAPHEMES.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** The text if it fits, otherwise as much of its beginning as fits before an ellipsis. */
export function cutToWidth(text: string, widthMax: number): string {
  if (textWidth(text) <= widthMax) return text;
  let width = 1;
  let end = 0;
  for (const { segment, index } of GRAPHEMES.segment(text)) {
    width += graphemeWidth(segment);
    if (width > widthMax) break;
    end = index + segment.length;
  }
  return `${text.slice(0, end)}…`;
}

function graphemeWidth(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0;
  if (HALF_WIDTH.test(grapheme)) return 1;
  return WIDE.test(grapheme) || PICTURE.test(grapheme) ? 2 : 1;
}
