// The members of one JSON object, each value as the text that it is spelled with: parsing would
// change numbers such as 12345678901234567890 or 1.0. Checks the object's own level only; whoever
// uses a value parses it.

export interface JsonMember {
  readonly name: string;
  readonly text: string;
}

/** In order. Throws SyntaxError when the text is not an object at its own level, or names a member twice. */
export function membersOf(text: string): JsonMember[] {
  const members: JsonMember[] = [];
  let at = skipSpace(text, 0);
  at = expect(text, at, '{');
  if (text[skipSpace(text, at)] === '}') at = skipSpace(text, at) + 1;
  else {
    do {
      at = skipSpace(text, at);
      const nameEnd = endOfString(text, at);
      const name = JSON.parse(text.slice(at, nameEnd)) as string;
      if (members.some((member) => member.name === name)) {
        throw new SyntaxError(`the member ${JSON.stringify(name)} appears twice`);
      }
      const start = skipSpace(text, expect(text, skipSpace(text, nameEnd), ':'));
      const end = endOfValue(text, start);
      members.push({ name, text: text.slice(start, end) });
      at = skipSpace(text, end) + 1;
    } while (text[at - 1] === ',');
    expect(text, at - 1, '}');
  }
  at = skipSpace(text, at);
  if (at < text.length) throw unexpected(text, at, 'the end');
  return members;
}

function endOfValue(text: string, start: number): number {
  const first = text[start];
  if (first === '"') return endOfString(text, start);
  let at = start;
  if (first !== '{' && first !== '[') {
    while (at < text.length && !/[\s,\]}]/.test(text[at]!)) at++;
    if (at === start) throw unexpected(text, at, 'a value');
    return at;
  }
  let depth = 0;
  while (at < text.length) {
    const character = text[at];
    if (character === '"') {
      at = endOfString(text, at);
      continue;
    }
    at++;
    if (character === '{' || character === '[') depth++;
    else if ((character === '}' || character === ']') && --depth === 0) return at;
  }
  throw unexpected(text, at, 'the end of a value');
}

function endOfString(text: string, start: number): number {
  for (let at = expect(text, start, '"'); at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at + 1;
  }
  throw unexpected(text, text.length, '"');
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ' || text[at] === '\t' || text[at] === '\r' || text[at] === '\n') at++;
  return at;
}

function expect(text: string, at: number, character: string): number {
  if (text[at] !== character) throw unexpected(text, at, character);
  return at + 1;
}

function unexpected(text: string, at: number, expected: string): SyntaxError {
  const found = at < text.length ? `"${text.slice(at, at + 12)}"` : 'the end';
  return new SyntaxError(`expected ${expected} at character ${at + 1}, found ${found}`);
}
