// Parses a filter that arrived somewhere in a request, so that findings point into the request.

import { SagittaError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { JsonObject } from '../../common/types.js';
import type { FilterNode } from '../../filter/filter-node.js';
import { parseFilter } from '../../filter/parse.js';

/** Throws `invalid_filter` with pointers that start with `pointer`. */
export function parseFilterAt(pointer: string, filter: JsonObject, limits: Limits): FilterNode {
  try {
    return parseFilter(filter, limits);
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    throw new SagittaError(error.code, error.message, {
      issues: error.issues.map((item) => ({ ...item, pointer: pointer + item.pointer })),
    });
  }
}
