// Finds where the values in JSON text begin and end, so that a value can be kept as it was spelled: parsing would
// change numbers such as 12345678901234567890 or 1.0. It checks the syntax of the objects that it walks only at their
// own level; the caller parses the values that it uses.

import { decodeUtf8, encodeUtf8, searchable } from '../../common/bytes.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** The highest byte that is white space. */
const BLANK = 0x20;

/** In shorter strings a loop finds the end faster than `Buffer.indexOf`. */
const SHORT_STRING_BYTES = 32;

export interface JsonMember {
  readonly name: string;
  /** As spelled, quotes included. */
  readonly nameText: string;
  /** The value as spelled. */
  readonly text: string;
}

/**
 * Returns the members of a JSON object in order, including repeated names. Throws SyntaxError if the text is not an
 * object at its own level.
 */
export function readMembers(text: string): JsonMember[] {
  const bytes = encodeUtf8(text);
  const members: JsonMember[] = [];
  const scanner = new JsonScanner(bytes);
  scanner.scanObject((nameStart, nameEnd, start, end) => {
    const nameText = decodeUtf8(bytes, nameStart, nameEnd);
    const name = JSON.parse(nameText) as string;
    members.push({ name, nameText, text: decodeUtf8(bytes, start, end) });
  });
  scanner.expectEnd();
  return members;
}

/** Like `readMembers`, but also throws SyntaxError for a repeated name. */
export function readUniqueMembers(text: string): JsonMember[] {
  const members = readMembers(text);
  const names = new Set<string>();
  for (const { name } of members) {
    if (names.has(name)) {
      throw new SyntaxError(`the member ${JSON.stringify(name)} appears twice`);
    }
    names.add(name);
  }
  return members;
}

/** Returns the elements of a JSON array as spelled. Throws SyntaxError if the text is not an array. */
export function readElements(text: string): string[] {
  const bytes = encodeUtf8(text);
  const elements: string[] = [];
  const scanner = new JsonScanner(bytes);
  scanner.scanArray((start, end) => elements.push(decodeUtf8(bytes, start, end)));
  scanner.expectEnd();
  return elements;
}

/** Called with the offsets of a name, including its quotes, and of its value. */
type MemberVisitor = (nameStart: number, nameEnd: number, start: number, end: number) => void;

/** Walks over JSON values in UTF-8, one after another. */
export class JsonScanner {
  readonly #bytes: Uint8Array;
  #at = 0;
  /** Where these next occur at or after `#at`, cached so that each byte is searched only once. */
  #nextQuote = -1;
  #nextOpen = -1;
  #nextClose = -1;
  /** The offsets of the value that `findMember` found; both 0 if it found none. */
  start = 0;
  end = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = searchable(bytes);
  }

  moveTo(offset: number): void {
    this.#at = offset;
    this.#nextQuote = -1;
    this.#nextOpen = -1;
    this.#nextClose = -1;
  }

  /** Skips the bracket or comma before the next element of an array. */
  enterElement(): void {
    this.#skipSpace();
    this.#at++;
    this.#skipSpace();
  }

  /** Walks over the object here and records its last member with this name, which JSON.parse would keep. */
  findMember(name: string): void {
    this.start = 0;
    this.end = 0;
    this.scanObject((nameStart, nameEnd, start, end) => {
      if (!this.#isName(nameStart, nameEnd, name)) return;
      this.start = start;
      this.end = end;
    });
  }

  /** Walks over the object at the current offset. */
  scanObject(visit: MemberVisitor): void {
    this.#skipSpace();
    this.#expect(OPEN_BRACE);
    this.#skipSpace();
    if (this.#bytes[this.#at] === CLOSE_BRACE) {
      this.#at++;
      return;
    }
    for (;;) {
      this.#skipSpace();
      const nameStart = this.#at;
      if (this.#bytes[nameStart] !== QUOTE) throw this.#unexpected('"');
      this.#skipString();
      const nameEnd = this.#at;
      this.#skipSpace();
      this.#expect(COLON);
      this.#skipSpace();
      const start = this.#at;
      this.#skipValue();
      visit(nameStart, nameEnd, start, this.#at);
      this.#skipSpace();
      if (this.#bytes[this.#at] !== COMMA) break;
      this.#at++;
    }
    this.#expect(CLOSE_BRACE);
  }

  /** Walks over the array at the current offset. */
  scanArray(visit: (start: number, end: number) => void): void {
    this.#skipSpace();
    this.#expect(OPEN_BRACKET);
    this.#skipSpace();
    if (this.#bytes[this.#at] === CLOSE_BRACKET) {
      this.#at++;
      return;
    }
    for (;;) {
      this.#skipSpace();
      const start = this.#at;
      this.#skipValue();
      visit(start, this.#at);
      this.#skipSpace();
      if (this.#bytes[this.#at] !== COMMA) break;
      this.#at++;
    }
    this.#expect(CLOSE_BRACKET);
  }

  /** Throws SyntaxError unless only white space follows. */
  expectEnd(): void {
    this.#skipSpace();
    if (this.#at < this.#bytes.length) throw this.#unexpected('the end');
  }

  /** Whether the quoted string at bytes[start..end) equals the name, which is ASCII. */
  #isName(start: number, end: number, name: string): boolean {
    const bytes = this.#bytes;
    let isEscaped = false;
    let isEqual = end - start - 2 === name.length;
    for (let i = start + 1; i < end - 1; i++) {
      if (bytes[i] === BACKSLASH) isEscaped = true;
      if (isEqual && bytes[i] !== name.charCodeAt(i - start - 1)) isEqual = false;
    }
    return isEscaped ? JSON.parse(decodeUtf8(bytes, start, end)) === name : isEqual;
  }

  #expect(byte: number): void {
    if (this.#bytes[this.#at] !== byte) throw this.#unexpected(String.fromCharCode(byte));
    this.#at++;
  }

  #unexpected(expected: string): SyntaxError {
    const at = Math.min(this.#at, this.#bytes.length);
    const character = decodeUtf8(this.#bytes, 0, at).length + 1;
    const isEnd = at === this.#bytes.length;
    const found = isEnd
      ? 'the end'
      : `"${decodeUtf8(this.#bytes, at, Math.min(at + 12, this.#bytes.length))}"`;
    return new SyntaxError(`expected ${expected} at character ${character}, found ${found}`);
  }

  #skipSpace(): void {
    while (this.#bytes[this.#at]! <= BLANK && isSpace(this.#bytes[this.#at]!)) this.#at++;
  }

  #skipValue(): void {
    const first = this.#bytes[this.#at];
    if (first === QUOTE) this.#skipString();
    else if (first === OPEN_BRACE || first === OPEN_BRACKET) this.#skipContainer();
    else this.#skipLiteral();
  }

  #skipString(): void {
    const bytes = this.#bytes;
    const start = this.#at + 1;
    const shortEnd = Math.min(start + SHORT_STRING_BYTES, bytes.length);
    let at = start;
    while (at < shortEnd && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
    if (at >= shortEnd) {
      at = this.#find(QUOTE, at);
      while (at < bytes.length && this.#isEscaped(at)) at = this.#find(QUOTE, at + 1);
    }
    this.#at = at + 1;
    if (this.#at > bytes.length) throw this.#unexpected('"');
  }

  /** Whether an odd number of backslashes precedes the quote. */
  #isEscaped(quote: number): boolean {
    let at = quote;
    while (this.#bytes[at - 1] === BACKSLASH) at--;
    return (quote - at) % 2 === 1;
  }

  #skipLiteral(): void {
    const bytes = this.#bytes;
    let at = this.#at;
    while (bytes[at]! > 0x20 && bytes[at] !== COMMA && (bytes[at]! | 0x20) !== CLOSE_BRACE) at++;
    if (at === this.#at) throw this.#unexpected('a value');
    this.#at = at;
  }

  #skipContainer(): void {
    const bytes = this.#bytes;
    let depth = 0;
    do {
      const byte = bytes[this.#at];
      if (byte === QUOTE) {
        this.#skipString();
      } else if (byte === OPEN_BRACKET && this.#skipPlainArray()) {
        // The array of numbers was skipped with one search.
      } else {
        // Setting bit 5 turns brackets into braces.
        const brace = byte! | 0x20;
        if (brace === OPEN_BRACE) depth++;
        else if (brace === CLOSE_BRACE) depth--;
        this.#at++;
      }
    } while (depth > 0 && this.#at < bytes.length);
    if (depth > 0) throw this.#unexpected('the end of a value');
  }

  /** Skips an array without strings or inner arrays. If it contains any, returns false and does not move. */
  #skipPlainArray(): boolean {
    const start = this.#at;
    if (this.#nextClose < start) this.#nextClose = this.#find(CLOSE_BRACKET, start);
    if (this.#nextQuote < start) this.#nextQuote = this.#find(QUOTE, start);
    if (this.#nextOpen <= start) this.#nextOpen = this.#find(OPEN_BRACKET, start + 1);
    const close = this.#nextClose;
    if (close > this.#nextQuote || close > this.#nextOpen) return false;
    this.#at = close + 1;
    return true;
  }

  #find(byte: number, from: number): number {
    const found = this.#bytes.indexOf(byte, from);
    return found === -1 ? this.#bytes.length : found;
  }
}

function isSpace(byte: number): boolean {
  return byte === BLANK || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
