// Ids of vectors: 1 to 512 bytes of UTF-8, compared byte for byte. Without control characters, so
// that logs and terminals stay readable, and without halves of surrogate pairs, which have no UTF-8.

import type { Violation } from '../../common/errors.js';
import { describeKind } from './describe-kind.js';

/** The length of the id in bytes, or what is wrong with it. */
export function measureId(id: unknown, bytesMax: number): number | Violation {
  if (typeof id !== 'string') {
    return { code: 'invalid_request', detail: `An id is a string; found ${describeKind(id)}.` };
  }
  let byteCount = 0;
  for (let i = 0; i < id.length; i++) {
    const unit = id.charCodeAt(i);
    if (unit < 0x80) {
      if (unit < 0x20 || unit === 0x7f) return controlCharacter(unit, i);
      byteCount += 1;
    } else if (unit < 0x800) {
      if (unit < 0xa0) return controlCharacter(unit, i);
      byteCount += 2;
    } else if (unit < 0xd800 || unit > 0xdfff) {
      byteCount += 3;
    } else {
      const next = id.charCodeAt(i + 1);
      if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) {
        return {
          code: 'invalid_request',
          detail: `An id is text that UTF-8 can hold; found half of a surrogate pair at character ${i}.`,
        };
      }
      byteCount += 4;
      i++;
    }
  }
  if (byteCount === 0) return { code: 'invalid_request', detail: 'An id is never empty.' };
  if (byteCount > bytesMax) {
    return {
      code: 'limit_exceeded',
      detail: `An id has at most ${bytesMax} bytes of UTF-8; found ${byteCount}.`,
      expected: bytesMax,
      actual: byteCount,
    };
  }
  return byteCount;
}

function controlCharacter(unit: number, index: number): Violation {
  const name = `U+${unit.toString(16).toUpperCase().padStart(4, '0')}`;
  return {
    code: 'invalid_request',
    detail: `An id has no control characters; found ${name} at character ${index}.`,
  };
}
