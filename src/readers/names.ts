// Names that do not exist: an error that lists those that do, and the one that was probably meant.

import { printable } from '../common/printable.js';
import { nearestName } from '../common/unknown-name.js';
import { ReadError } from './read-error.js';

/** Names listed in an error. */
const LISTED_MAX = 12;

/** `; did you mean "id"?`, or nothing when no name is near. */
export function nearestHint(name: string, names: Iterable<string>): string {
  const nearest = nearestName(name, [...names]);
  return nearest === undefined ? '' : `; did you mean ${JSON.stringify(nearest)}?`;
}

/** `kind` is what is named, such as column, and `option` the option that names it. */
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

/** `a, b, c`; of many only the first. */
export function listNames(names: readonly string[]): string {
  const more = names.length > LISTED_MAX ? ', …' : '';
  return `${names.slice(0, LISTED_MAX).map(printable).join(', ')}${more}`;
}
