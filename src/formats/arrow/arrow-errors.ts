// Errors about Arrow data: `invalid_arrow` for bytes that a client sent, `data_corrupt` for files and records that
// we wrote. For any bytes, readers throw only SagittaError.

import { SagittaError } from '../../common/errors.js';

/** Messages are cut because names in invalid data may contain any characters and be of any length. */
const FOUND_CHARACTERS_MAX = 300;

/** @param found what follows "Found", without the full stop. */
export function invalidArrow(found: string, cause?: unknown): SagittaError {
  return new SagittaError('invalid_arrow', `Found ${printable(found)}.`, { cause });
}

/** @param found what was found and, where it helps, what was expected; as for `invalidArrow`. */
export function corrupt(found: string, cause?: unknown): SagittaError {
  return new SagittaError('data_corrupt', `Found ${printable(found)}.`, { cause });
}

/** Runs `work` and prefixes errors in data with `place`. */
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

/** Runs a reader of stored data. Invalid Arrow and any unknown error become `data_corrupt`. */
export function readingStored<Result>(what: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SagittaError)) throw corrupt(`${what} that cannot be read`, error);
    if (error.code !== 'invalid_arrow') throw error;
    throw new SagittaError('data_corrupt', error.message, { cause: error });
  }
}

function printable(found: string): string {
  return found.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/gu, '?').slice(0, FOUND_CHARACTERS_MAX);
}
