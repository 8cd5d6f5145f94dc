// How many columns of a terminal a text takes: wide characters (Chinese, Japanese, Korean, emoji) take
// two, marks that combine with the character before them none.

const GRAPHEMES = new Intl.Segmenter();
const ASCII = /^[\x20-\x7e]*$/;
/** Those of Unicode's East Asian Width "wide" and "fullwidth", by script and block. */
const WIDE =
  /^(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Tangut}\p{Script=Nushu}\p{Emoji_Presentation}\u2329\u232a\u3000-\u303e\u30fb\u30fc\u31c0-\u33ff\uff01-\uff60\uffe0-\uffe6])/u;
/** The narrow forms of wide scripts. */
const HALF_WIDTH = /^[\uff61-\uffdc]/u;
/** Marks alone, which a text may begin with. */
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;
/** Asks for the form of a picture. */
const PICTURE = /\ufe0f/u;

export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of GRAPHEMES.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** The text, or as much of its beginning as fits before an ellipsis. */
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
