// Rejects unknown options and suggests the name that was probably meant, so that a misspelling in JavaScript fails before
// anything is sent.

import { describeUnknownName } from '../../../src/common/unknown-name.js';
import { SagittaClientError } from './error.js';

/** Throws SagittaClientError (`invalid_argument`) for a member of `options` that is not in `names`. */
export function requireKnown(options: object, names: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const detail = `among the options: ${describeUnknownName(unknown, names)}`;
  throw new SagittaClientError('invalid_argument', detail);
}
