// How many files and connections the process may have open.

import { readFileSync } from 'node:fs';

/** Modules, libraries, the store, segment files and the terminal, with some connections. */
export const OPEN_FILES_MIN = 256;

/** Node raises the limit at its start as far as it may. Infinity where there is none, or the system does not tell. */
export function openFilesMax(): number {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'latin1');
  } catch {
    return Infinity;
  }
  const found = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return found === undefined ? Infinity : Number(found);
}
