// Parses JSON both with the addon, which extracts the vectors, and entirely in JavaScript, and compares the results.

import assert from 'node:assert/strict';
import { type CutVectors, cutVectors } from '../../src/formats/json/cut-vectors.js';
import type { ParsedBody } from '../../src/server/bodies/json-body.js';
import type { ParsedVectors } from '../../src/server/bodies/json-rows.js';
import type { ParsedRows } from '../../src/server/bodies/parsed-rows.js';

const cutNothing: CutVectors = () => null;

/** Returns the result of the addon, or throws its error. `comparable` leaves out what is random. */
export function readBothWays<Result>(
  read: (cut: CutVectors) => Result,
  comparable: (result: Result) => unknown,
): Result {
  const first = attempt(() => read(cutVectors));
  const second = attempt(() => read(cutNothing));
  if ('error' in first || 'error' in second) {
    assert.deepEqual(first, second);
    throw (first as { error: unknown }).error;
  }
  assert.deepEqual(comparable(first.result), comparable(second.result));
  return first.result;
}

export function parseBothWays<Value>(
  parse: (cut: CutVectors) => ParsedBody<Value>,
  comparable: (value: Value) => unknown = (value) => value,
): ParsedBody<Value> {
  return readBothWays(parse, ({ outcome, ...rest }) =>
    outcome.ok
      ? { ...rest, value: comparable(outcome.value) }
      : { ...rest, error: { ...outcome.error, stack: null } },
  );
}

function attempt<Result>(read: () => Result): { result: Result } | { error: unknown } {
  try {
    return { result: read() };
  } catch (error) {
    return { error };
  }
}

/** The rows without their ids, since generated ids differ each time. */
export function withoutIds<Rows extends Pick<ParsedRows, 'batch'>>(rows: Rows): unknown {
  return { ...rows, ids: null, batch: { ...rows.batch, ids: null } };
}

export function withoutGeneratedIds(rows: ParsedVectors): unknown {
  return rows.ids === null ? rows : withoutIds(rows);
}
