// Names of columns as the command line takes them: `x,y,z`, and `d0..d767` for all between.

import { InvalidArgumentError } from 'commander';

/** More columns than any vector has values. */
const COLUMNS_MAX = 1_000_000;

/** Throws InvalidArgumentError. */
export function expandColumns(text: string): string[] {
  const names = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .flatMap(expand);
  if (names.length > 0) return names;
  throw new InvalidArgumentError('Expected names of columns such as d0..d767 or x,y,z.');
}

function expand(part: string): string[] {
  const range = /^(.*?)(\d+)\.\.(.*?)(\d+)$/.exec(part);
  if (range === null) return [part];
  const [, prefix, first, lastPrefix, last] = range as unknown as string[];
  const from = Number(first);
  const to = Number(last);
  if ((lastPrefix !== '' && lastPrefix !== prefix) || to < from || to - from >= COLUMNS_MAX) {
    throw new InvalidArgumentError(`Expected a range such as d0..d767, found ${part}.`);
  }
  // Zeros in front of the first are in front of all: d000..d767.
  const width = first!.startsWith('0') ? first!.length : 0;
  return Array.from(
    { length: to - from + 1 },
    (_, at) => prefix! + String(from + at).padStart(width, '0'),
  );
}
