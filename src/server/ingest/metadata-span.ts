// Where the metadata of each row stands in the bytes of a body, so that it can be given back
// exactly as sent. The body is known to be valid JSON of the right shape (it went through
// JSON.parse before), so this only walks; like JSON.parse, the last of equal names wins.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Up to here a loop finds the end of a string sooner than a search by the runtime. */
const SHORT_STRING_BYTES = 32;

/** Byte offsets: row i has its metadata at body[spans[2 * i]..spans[2 * i + 1]), or none if both are 0. */
export type MetadataSpans = Int32Array;

/** Of the rows of the array `vectors` in an object. */
export function findMetadataSpans(body: Uint8Array, rowCount: number): MetadataSpans {
  const spans = new Int32Array(2 * rowCount);
  const walker = new Walker(body);
  walker.walkObject('vectors');
  walker.moveTo(walker.memberStart);
  for (let row = 0; row < rowCount; row++) {
    walker.enterElement();
    walker.walkObject('metadata');
    spans[2 * row] = walker.memberStart;
    spans[2 * row + 1] = walker.memberEnd;
  }
  return spans;
}

/** Of an object that is itself the row. */
export function findMetadataSpan(body: Uint8Array): MetadataSpans {
  const walker = new Walker(body);
  walker.walkObject('metadata');
  return Int32Array.of(walker.memberStart, walker.memberEnd);
}

/** Of objects that stand one after the other in a body, each found when it is asked for. */
export class MetadataFinder {
  readonly #walker: Walker;
  readonly #spans: MetadataSpans;

  /** The spans are written into as they are found. */
  constructor(body: Uint8Array, spans: MetadataSpans) {
    this.#walker = new Walker(body);
    this.#spans = spans;
  }

  find(row: number, objectStart: number): void {
    const walker = this.#walker;
    walker.moveTo(objectStart);
    walker.walkObject('metadata');
    this.#spans[2 * row] = walker.memberStart;
    this.#spans[2 * row + 1] = walker.memberEnd;
  }
}

class Walker {
  readonly #bytes: Buffer;
  #at = 0;
  /** The next of these at or after `#at`, once looked up; so each byte is searched once. */
  #nextQuote = -1;
  #nextOpen = -1;
  #nextClose = -1;
  /** The value of the member that `walkObject` looked for; both 0 when there was none. */
  memberStart = 0;
  memberEnd = 0;

  constructor(body: Uint8Array) {
    this.#bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  }

  moveTo(offset: number): void {
    this.#at = offset;
    this.#nextQuote = -1;
    this.#nextOpen = -1;
    this.#nextClose = -1;
  }

  /** Steps over the bracket or comma before the next element of an array. */
  enterElement(): void {
    this.#skipSpace();
    this.#at++;
    this.#skipSpace();
  }

  /** Walks over the object at or after the current place and notes where its last member `name` stands. */
  walkObject(name: string): void {
    this.memberStart = 0;
    this.memberEnd = 0;
    this.#skipSpace();
    this.#at++;
    this.#skipSpace();
    if (this.#bytes[this.#at] === CLOSE_BRACE) {
      this.#at++;
      return;
    }
    do {
      this.#skipSpace();
      const keyStart = this.#at;
      this.#skipString();
      const isWanted = this.#isKey(keyStart, this.#at, name);
      this.#skipSpace();
      this.#at++;
      this.#skipSpace();
      const valueStart = this.#at;
      this.#skipValue();
      if (isWanted) {
        this.memberStart = valueStart;
        this.memberEnd = this.#at;
      }
      this.#skipSpace();
    } while (this.#bytes[this.#at++] === COMMA);
  }

  /** Whether the string with quotes at bytes[start..end) is the name, which is ASCII. */
  #isKey(start: number, end: number, name: string): boolean {
    const bytes = this.#bytes;
    let isEscaped = false;
    let isEqual = end - start - 2 === name.length;
    for (let i = start + 1; i < end - 1; i++) {
      if (bytes[i] === BACKSLASH) isEscaped = true;
      if (isEqual && bytes[i] !== name.charCodeAt(i - start - 1)) isEqual = false;
    }
    return isEscaped ? JSON.parse(bytes.toString('utf8', start, end)) === name : isEqual;
  }

  #skipSpace(): void {
    // Nothing else in JSON is at or below the blank.
    while (this.#bytes[this.#at]! <= 0x20) this.#at++;
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
  }

  /** Whether an odd number of backslashes stands before the quote. */
  #isEscaped(quote: number): boolean {
    let at = quote;
    while (this.#bytes[at - 1] === BACKSLASH) at--;
    return (quote - at) % 2 === 1;
  }

  #skipLiteral(): void {
    const bytes = this.#bytes;
    let at = this.#at;
    while (bytes[at]! > 0x20 && bytes[at] !== COMMA && (bytes[at]! | 0x20) !== CLOSE_BRACE) at++;
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
        // An array of numbers: skipped in one leap.
      } else {
        // Setting bit 5 turns brackets into braces.
        const brace = byte! | 0x20;
        if (brace === OPEN_BRACE) depth++;
        else if (brace === CLOSE_BRACE) depth--;
        this.#at++;
      }
    } while (depth > 0 && this.#at < bytes.length);
  }

  /** Leaps over an array without strings and arrays; false, and no move, when it has some. */
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
