// Bytes and text, in Node and in browsers. Node's Buffer is used where there is one: it is several times as fast as
// the decoders that browsers have, and works on shared memory, which they refuse.

/** What is used of Node's module `buffer`. Declared here, since the console is compiled without Node's types. */
interface NodeModule {
  readonly Buffer: {
    from(text: string, encoding?: 'latin1' | 'base64'): NodeBuffer;
    from(buffer: ArrayBufferLike, byteOffset: number, length: number): NodeBuffer;
    allocUnsafeSlow(byteCount: number): NodeBuffer;
    byteLength(text: string): number;
    readonly prototype: {
      /** These take any bytes as `this`, whereas `toString` needs a Buffer, which would be made for each short text. */
      latin1Slice(start: number, end: number): string;
      utf8Slice(start: number, end: number): string;
    };
  };
  isUtf8(bytes: Uint8Array): boolean;
}

interface NodeBuffer extends Uint8Array<ArrayBuffer> {
  toString(encoding?: 'utf8' | 'latin1' | 'hex' | 'base64', start?: number, end?: number): string;
  write(text: string, at: number, encoding: 'latin1' | 'utf8'): number;
}

interface NodeProcess {
  getBuiltinModule?(name: 'node:buffer'): NodeModule;
}

/** Undefined in browsers. */
const node = (
  globalThis as { readonly process?: NodeProcess | undefined }
).process?.getBuiltinModule?.('node:buffer');

function nodeView(bytes: Uint8Array): NodeBuffer {
  return node!.Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The same bytes; in Node as a Buffer, whose `indexOf` is faster. */
export function searchable(bytes: Uint8Array): Uint8Array {
  return node === undefined ? bytes : nodeView(bytes);
}

/** Bytes of any content, in a buffer of their own. */
export function allocateBytes(byteCount: number): Uint8Array<ArrayBuffer> {
  return node?.Buffer.allocUnsafeSlow(byteCount) ?? new Uint8Array(byteCount);
}

export function isUtf8(bytes: Uint8Array): boolean {
  if (node !== undefined) return node.isUtf8(bytes);
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** The text of `bytes[start..end)`, with replacement characters for what is not UTF-8. */
export function decodeUtf8(bytes: Uint8Array, start = 0, end = bytes.length): string {
  if (node === undefined) {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    return decoder.decode(bytes.subarray(start, end));
  }
  return node.Buffer.prototype.utf8Slice.call(bytes, start, Math.min(end, bytes.length));
}

/** A character for each byte of `bytes[start..end)`. */
export function decodeLatin1(bytes: Uint8Array, start = 0, end = bytes.length): string {
  if (node !== undefined) {
    return node.Buffer.prototype.latin1Slice.call(bytes, start, Math.min(end, bytes.length));
  }
  let text = '';
  for (let at = start; at < end; at++) text += String.fromCharCode(bytes[at]!);
  return text;
}

export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  return node?.Buffer.from(text) ?? new TextEncoder().encode(text);
}

export function utf8ByteCount(text: string): number {
  return node?.Buffer.byteLength(text) ?? new TextEncoder().encode(text).length;
}

/** @param text a byte for each character. Returns their number. */
export function writeLatin1(target: Uint8Array, text: string, at: number): number {
  if (node !== undefined) return nodeView(target).write(text, at, 'latin1');
  for (let i = 0; i < text.length; i++) target[at + i] = text.charCodeAt(i);
  return text.length;
}

/** Returns the number of bytes. */
export function writeUtf8(target: Uint8Array, text: string, at: number): number {
  if (node !== undefined) return nodeView(target).write(text, at, 'utf8');
  return new TextEncoder().encodeInto(text, target.subarray(at)).written;
}

/** The bytes of a text of one byte per character. */
export function latin1Bytes(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

export function hexOf(bytes: Uint8Array): string {
  if (node !== undefined) return nodeView(bytes).toString('hex');
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The bytes of base64 (RFC 4648, section 4, with padding); undefined for any other spelling. */
export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (node !== undefined) {
    const bytes = node.Buffer.from(text, 'base64');
    // Decoding is lenient; only the one canonical spelling, with padding, survives the way back.
    return bytes.toString('base64') === text ? bytes : undefined;
  }
  try {
    const latin1 = atob(text);
    return btoa(latin1) === text
      ? Uint8Array.from(latin1, (character) => character.charCodeAt(0))
      : undefined;
  } catch {
    return undefined;
  }
}

/** One array of all the bytes; the only part itself if there is one. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const whole = allocateBytes(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return bytes.length >= start.length && start.every((byte, at) => bytes[at] === byte);
}
