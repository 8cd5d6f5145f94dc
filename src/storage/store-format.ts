// The format of a data directory: its layout of tables, keys and blobs. A newer one is refused, by
// those who open and those who only look.

import { SagittaError } from '../common/errors.js';

export const FORMAT_VERSION = 1;

export function newerFormat(directory: string, found: string): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    `The data directory ${directory} has format version ${found}; this Sagitta reads version ${FORMAT_VERSION}. Start the version that wrote it, or name another directory.`,
  );
}
