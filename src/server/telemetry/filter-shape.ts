// The shape of a filter for the slow query log: its structure and operators without values and metadata paths,
// since paths may be data too. Equal paths of a filter get the same number.

import type { Json, JsonObject } from '../../common/types.js';

/** Longer shapes are truncated. */
const CHARACTERS_MAX = 500;
/** The maximum depth of valid filters. Invalid ones are logged too when their query fails. */
const DEPTH_MAX = 16;
const OPERATOR = /^\$[a-z_]{1,24}$/;

/** For example `{f1:?,$or:[{f2:{$gte:?}},{f3:{$in:[20]}}]}`, where `[20]` stands for 20 values. */
export function filterShape(filter: JsonObject): string {
  const numbers = new Map<string, number>();
  const nameOf = (key: string) => {
    if (OPERATOR.test(key)) return key;
    const number = numbers.get(key) ?? numbers.size + 1;
    numbers.set(key, number);
    return `f${number}`;
  };
  let length = 0;
  const shapeOf = (value: Json, depth: number): string => {
    if (typeof value !== 'object' || value === null) return '?';
    if (depth === DEPTH_MAX || length > CHARACTERS_MAX) return '…';
    if (Array.isArray(value)) {
      const isOfFilters = value.some((item) => typeof item === 'object' && item !== null);
      if (!isOfFilters) return `[${value.length}]`;
      return `[${value.map((item) => shapeOf(item, depth + 1)).join(',')}]`;
    }
    const members = Object.entries(value).map(([key, item]) => {
      const name = nameOf(key);
      length += name.length + 3;
      return `${name}:${shapeOf(item as Json, depth + 1)}`;
    });
    return `{${members.join(',')}}`;
  };
  const shape = shapeOf(filter, 0);
  return shape.length > CHARACTERS_MAX ? `${shape.slice(0, CHARACTERS_MAX)}…` : shape;
}
