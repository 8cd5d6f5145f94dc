// Errors about names that do not exist: they list the existing names and suggest the one that was probably meant.

import { printable } from '../common/printable.js';
import { nearestName } from '../common/unknown-name.js';
import { ReadError } from './read-error.js';

/** Names that an error lists at most. */
const LISTED_MAX = 12;

/** `; did you mean "id"?`, or nothing when no name is near. */
export function nearestHint(name: string, names: Iterable<string>): string {
  const nearest = nearestName(name, [...names]);
  return nearest === undefined ? '' : `; did you mean ${JSON.stringify(nearest)}?`;
}

/** `kind` says what the name stands for, such as `column`; `option` is the option that contains it. */
export function noSuchName(
  location: string,
  kind: string,
  { name, option, names }: { name: string; option: string; names: readonly string[] },
): ReadError {
  const found = `no ${kind} ${JSON.stringify(name)}, which ${option} names`;
  return new ReadError(
    `${location}: ${found} (${kind}s: ${listNames(names)})${nearestHint(name, names)}`,
    { isUsage: true },
  );
}

/** `a, b, c`; a long list ends in an ellipsis. */
export function listNames(names: readonly string[]): string {
  const more = names.length > LISTED_MAX ? ', …' : '';
  return `${names.slice(0, LISTED_MAX).map(printable).join(', ')}${more}`;
}
