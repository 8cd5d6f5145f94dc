// One row on its way from a file to the server, and the rules that NDJSON and Arrow share: what an
// id is, what values are, how the row is spelled as JSON.

import { CliError } from './failure.js';

export interface ImportRow {
  /** Undefined: the service makes one. */
  readonly id: string | undefined;
  readonly dimension: number;
  /** The vector as the API takes it, as JSON text. */
  readonly text: string;
  /** `file:line` or `file, row n`: for the errors of the server. */
  readonly place: string;
}

export interface RowFields {
  readonly idField: string;
  /** Whether a row without id is an error. */
  readonly isIdRequired: boolean;
  readonly valuesField: string;
  /** Fields that become metadata; undefined for what the format means by default. */
  readonly metadataFields: readonly string[] | undefined;
}

export function makeRow(
  place: string,
  id: string | undefined,
  values: Float32Array,
  metadataText: string,
): ImportRow {
  const idText = id === undefined ? '' : `"id":${JSON.stringify(id)},`;
  const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return {
    id,
    dimension: values.length,
    text: `{${idText}"values":"${bytes.toString('base64')}","metadata":${metadataText}}`,
    place,
  };
}

/** Throws CliError unless every number is finite as float32. */
export function toFloat32(place: string, field: string, numbers: ArrayLike<unknown>): Float32Array {
  const values = new Float32Array(numbers.length);
  for (let at = 0; at < values.length; at++) {
    const found = numbers[at];
    if (typeof found !== 'number') {
      throw rowError(place, `${field}[${at}] is ${show(found)}, expected a number`);
    }
    values[at] = found;
    if (!Number.isFinite(values[at])) {
      throw rowError(place, `${field}[${at}] is ${found}, expected a number within float32`);
    }
  }
  return values;
}

export function rowError(place: string, message: string): CliError {
  return new CliError(`${place}: ${message}`);
}

/** A value in an error: as JSON, cut short. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= 40 ? text : `${text.slice(0, 40)}…`;
}
