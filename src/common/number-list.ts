// Text of a list of numbers, in brackets or without: `[0.1, 0.2]`, `0.1 0.2`, `0.1;0.2`. Splits it, and tells
// when it can be read in more than one way; what the parts are is for the caller to check.

export interface NumberTexts {
  /** Without the white space around them. */
  readonly texts: readonly string[];
  /** The different separators. With more than one, commas are probably decimal: `0,1 0,2`. */
  readonly separators: readonly string[];
}

const POINT_SEPARATOR = /\s*[,;]\s*|\s+/;
const COMMA_SEPARATOR = /\s*;\s*|\s*,\s+|\s+/;

/** With decimal commas only a comma before white space is a separator: `0,1, 0,2`, `0,1 0,2`, `0,1;0,2`. */
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
 * A comma with a space is another separator than a comma alone where no value has a point: `0,1, 0,2` may
 * be two values as well as four.
 */
function commasOf(inner: string): string[] {
  if (!inner.includes(',')) return [];
  const isMixed = !inner.includes('.') && /,\S/.test(inner) && /, +\S/.test(inner);
  return isMixed ? [',', ', '] : [','];
}
