// What is said about Arrow that somebody sent: what was found, what was expected, and where. Nothing
// here throws anything but SagittaError, whatever the bytes are.

import { SagittaError } from '../../common/errors.js';

/** Names that stand in hostile bytes can be anything of any length. */
const FOUND_CHARACTERS_MAX = 300;

/** `found` is what follows "Found", without the full stop. */
export function invalidArrow(found: string, cause?: unknown): SagittaError {
  const printable = found
    .replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/gu, '?')
    .slice(0, FOUND_CHARACTERS_MAX);
  return new SagittaError('invalid_arrow', `Found ${printable}.`, { cause });
}

/** Runs `work`; where it finds something invalid, the place is said before it. */
export function located<Result>(place: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw atPlace(place, error);
  }
}

export function atPlace(place: string, error: unknown): unknown {
  if (!(error instanceof SagittaError)) return error;
  const detail = `${place}: ${error.message.charAt(0).toLowerCase()}${error.message.slice(1)}`;
  return new SagittaError(error.code, detail, { issues: error.issues, cause: error });
}
