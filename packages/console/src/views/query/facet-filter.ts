// Adds values of facets to a filter and removes them.

import type { JsonObject } from '@sagitta/client';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';

export type Scalar = string | number | boolean;

/** Whether the filter requires this value, alone or among others. */
export function hasValue(filter: JsonObject | undefined, path: string, value: Scalar): boolean {
  return valuesAt(filter, path).includes(value);
}

/** The filter with the value at the path if it lacks it, otherwise without. Several values of a path are alternatives. */
export function withToggled(
  filter: JsonObject | undefined,
  path: string,
  value: Scalar,
): JsonObject | undefined {
  const { [path]: condition, ...rest } = filter ?? {};
  const chosen = valuesAt(filter, path);
  const values = chosen.includes(value)
    ? chosen.filter((one) => one !== value)
    : [...chosen, value];
  if (chosen.length === 0 && condition !== undefined) {
    // The path has another condition, such as a range, which stays.
    return { $and: [filter as JsonObject, { [path]: value }] };
  }
  if (values.length === 0) return Object.keys(rest).length === 0 ? undefined : (rest as JsonObject);
  const [only] = values;
  return { ...rest, [path]: values.length === 1 ? only! : { $in: values } } as JsonObject;
}

function valuesAt(filter: JsonObject | undefined, path: string): readonly Scalar[] {
  const condition = filter?.[path];
  if (isJsonObject(condition)) {
    const { $in, ...others } = condition as { $in?: unknown };
    return Array.isArray($in) && Object.keys(others).length === 0 ? $in : [];
  }
  return condition === undefined || condition === null || Array.isArray(condition)
    ? []
    : [condition as Scalar];
}
