// Errors about Arrow data: `invalid_arrow` for bytes that a client sent, `data_corrupt` for files and records that
// we wrote. For any bytes, readers throw only SagittaError.

import { SagittaError } from '../../common/errors.js';

/** Messages are cut because names in invalid data may contain any characters and be of any length. */
const FOUND_CHARACTERS_MAX = 300;

interface Finding {
  /** What was expected, as a noun phrase. */
  readonly expected?: string | number;
  /** A sentence that says what to do. */
  readonly advice?: string;
  readonly cause?: unknown;
}

/** @param found what was found, as a noun phrase. */
export function invalidArrow(found: string, finding: Finding = {}): SagittaError {
  return errorOf('invalid_arrow', found, finding);
}

/** @param found what was found, as a noun phrase. */
export function corrupt(found: string, finding: Finding = {}): SagittaError {
  return errorOf('data_corrupt', found, finding);
}

function errorOf(
  code: 'invalid_arrow' | 'data_corrupt',
  found: string,
  { expected, advice, cause }: Finding,
): SagittaError {
  const detail =
    expected === undefined
      ? `Found ${printable(found)}.`
      : `Expected ${printable(String(expected))}; found ${printable(found)}.`;
  return new SagittaError(code, advice === undefined ? detail : `${detail} ${advice}`, { cause });
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
    if (!(error instanceof SagittaError))
      throw corrupt(`${what} that cannot be read`, { cause: error });
    if (error.code !== 'invalid_arrow') throw error;
    throw new SagittaError('data_corrupt', error.message, { cause: error });
  }
}

function printable(found: string): string {
  return found.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/gu, '?').slice(0, FOUND_CHARACTERS_MAX);
}
