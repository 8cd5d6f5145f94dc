// The number of files and connections that the process may have open.

import { readFileSync } from 'node:fs';

/** Enough for modules, libraries, the store, segment files and the terminal, and some connections. */
export const OPEN_FILES_MIN = 256;

/**
 * Node raises the limit as far as permitted when it starts. Infinity if there is no limit, or if the system does not
 * report it.
 */
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
