// Which types have a JSON: all but those of bytes, unions, intervals and runs.

import { type ArrowField, describeType, quoted } from './schema.js';
import { isTextField } from './strings.js';
import { isUuid } from './uuids.js';

/** Extension types whose text or bytes say more than their storage. */
export const JSON_EXTENSION = 'arrow.json';

const WITHOUT_JSON = [
  'binary',
  'large_binary',
  'binary_view',
  'fixed_size_binary',
  'union',
  'interval',
  'run_end_encoded',
];

/** A sentence, or null where the field can be written as JSON. */
export function jsonRefusal(field: ArrowField): string | null {
  const { type, children } = field;
  if (isUuid(field)) return null;
  if (WITHOUT_JSON.includes(type.kind)) {
    return `found ${describeType(field)}, which has no JSON; leave it out or convert it.`;
  }
  if (type.kind === 'struct') {
    const names = new Set<string>();
    for (const { name } of children) {
      if (names.has(name)) return `found two members of the name ${quoted(name)}.`;
      names.add(name);
    }
  }
  if (type.kind === 'map') {
    const [key, value] = children[0]!.children as [ArrowField, ArrowField];
    if (!isTextField(key)) {
      return `found a map with keys of ${describeType(key)}, expected text.`;
    }
    return jsonRefusal(value);
  }
  for (const child of children) {
    const refusal = jsonRefusal(child);
    if (refusal !== null) return refusal;
  }
  return null;
}
