// The members of a JSON object as they are spelled, so that an object can be changed in one member
// and keep the others to the letter. The text is known to be valid JSON: this only walks.

export interface JsonMember {
  readonly key: string;
  /** As spelled, quotes included. */
  readonly keyText: string;
  readonly valueText: string;
}

/** The members in order; of equal keys the last, as JSON.parse has it. Null when the text is no object. */
export function readMembers(text: string): Map<string, JsonMember> | null {
  let at = skipSpace(text, 0);
  if (text[at] !== '{') return null;
  const members = new Map<string, JsonMember>();
  at = skipSpace(text, at + 1);
  while (text[at] !== '}') {
    const keyEnd = skipString(text, at);
    const keyText = text.slice(at, keyEnd);
    // Over the colon.
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const valueEnd = skipValue(text, valueStart);
    const key = JSON.parse(keyText) as string;
    members.set(key, { key, keyText, valueText: text.slice(valueStart, valueEnd) });
    at = skipSpace(text, valueEnd);
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
  return members;
}

export function writeMembers(members: Iterable<JsonMember>): string {
  const texts = Array.from(members, ({ keyText, valueText }) => `${keyText}:${valueText}`);
  return `{${texts.join(',')}}`;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  // Nothing else outside strings is at or below the blank.
  while (text.charCodeAt(at) <= 0x20) at++;
  return at;
}

/** From the opening quote to behind the closing one. */
function skipString(text: string, from: number): number {
  let at = from + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function skipValue(text: string, from: number): number {
  let at = from;
  let depth = 0;
  do {
    const character = text[at]!;
    if (character === '"') {
      at = skipString(text, at);
    } else if (character === '{' || character === '[') {
      depth++;
      at++;
    } else if (character === '}' || character === ']') {
      depth--;
      at++;
    } else if (depth > 0) {
      at++;
    } else {
      while (at < text.length && !/[\s,}\]]/.test(text[at]!)) at++;
    }
  } while (depth > 0);
  return at;
}
