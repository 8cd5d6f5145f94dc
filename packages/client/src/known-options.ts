// Options that do not exist: an error with the name that was probably meant. Programs in JavaScript learn of a misspelling
// from it, before anything is sent.

import { describeUnknownName } from '../../../src/common/unknown-name.js';
import { SagittaClientError } from './error.js';

/** Throws SagittaClientError (`invalid_argument`) for members of options that do not exist. */
export function requireKnown(options: object, names: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const detail = `among the options: ${describeUnknownName(unknown, names)}`;
  throw new SagittaClientError('invalid_argument', detail);
}
