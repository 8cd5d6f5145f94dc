// Decides which types have a JSON form: all but binary, unions, intervals and run-end encoding.

import { type ArrowField, describeType, quoted } from './schema.js';
import { isTextField } from './strings.js';
import { isUuid } from './uuids.js';

/** The extension type for text that is JSON. */
export const JSON_EXTENSION = 'arrow.json';

const KINDS_WITHOUT_JSON = [
  'binary',
  'large_binary',
  'binary_view',
  'fixed_size_binary',
  'union',
  'interval',
  'run_end_encoded',
];

/** Returns why the field cannot be written as JSON, as a sentence that begins with "found"; null if it can. */
export function jsonViolation(field: ArrowField): string | null {
  const { type, children } = field;
  if (isUuid(field)) return null;
  if (KINDS_WITHOUT_JSON.includes(type.kind)) {
    return `found ${describeType(field)}, which has no JSON form. Leave the column out or convert it.`;
  }
  if (type.kind === 'struct') {
    const names = new Set<string>();
    for (const { name } of children) {
      if (names.has(name)) return `found two members with the name ${quoted(name)}.`;
      names.add(name);
    }
  }
  if (type.kind === 'map') {
    const [key, value] = children[0]!.children as [ArrowField, ArrowField];
    if (!isTextField(key)) {
      return `found a map with keys of ${describeType(key)}, expected text.`;
    }
    return jsonViolation(value);
  }
  for (const child of children) {
    const violation = jsonViolation(child);
    if (violation !== null) return violation;
  }
  return null;
}
