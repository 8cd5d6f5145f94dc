// Splits the text of a list of numbers, with or without brackets: `[0.1, 0.2]`, `0.1 0.2`, `0.1;0.2`. Detects text that
// can be read in more than one way. The caller checks whether the parts are numbers.

export interface NumberTexts {
  /** The parts, without surrounding white space. */
  readonly texts: readonly string[];
  /** The distinct separators. With more than one, commas are probably decimal: `0,1 0,2`. */
  readonly separators: readonly string[];
}

const POINT_SEPARATOR = /\s*[,;]\s*|\s+/;
const COMMA_SEPARATOR = /\s*;\s*|\s*,\s+|\s+/;

/** With decimal commas, a comma separates only before white space: `0,1, 0,2`, `0,1 0,2`, `0,1;0,2`. */
export function splitNumbers(text: string, hasDecimalCommas = false): NumberTexts {
  const inner = text.replace(/^\s*[[({]?\s*/, '').replace(/\s*[\])}]?\s*$/, '');
  if (inner === '') return { texts: [], separators: [] };
  const commas = hasDecimalCommas ? (/,\s/.test(inner) ? [', '] : []) : commasOf(inner);
  return {
    texts: inner.split(hasDecimalCommas ? COMMA_SEPARATOR : POINT_SEPARATOR),
    separators: [
      ...commas,
      ...(inner.includes(';') ? [';'] : []),
      ...(/[^\s,;]\s+[^\s,;]/.test(inner) ? [' '] : []),
    ],
  };
}

/**
 * If no value contains a point, a comma with a space is a different separator than a comma alone: `0,1, 0,2` may be two
 * values or four.
 */
function commasOf(inner: string): string[] {
  if (!inner.includes(',')) return [];
  const isMixed = !inner.includes('.') && /,\S/.test(inner) && /, +\S/.test(inner);
  return isMixed ? [',', ', '] : [','];
}
