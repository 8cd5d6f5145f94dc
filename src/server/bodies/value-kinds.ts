// Kinds of JSON values.

/** The kind of a value for error messages, which must not repeat its content. */
export function describeKind(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'bigint') return 'a number';
  return typeof value === 'boolean' ? String(value) : `a ${typeof value}`;
}
