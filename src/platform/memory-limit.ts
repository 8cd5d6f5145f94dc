// The memory that the process may use: the limit of its container, or that of the machine. And the part of
// it that is in use and that the system cannot take back.

import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';

/** In bytes. Without a limit the system reports 0, or a number that is larger than any memory. */
export function memoryOfProcess(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/**
 * Bytes that are not those of mapped files, which the system drops when it needs their memory. On systems
 * other than Linux all of the resident memory.
 */
export function memoryInUse(): number {
  let status: string;
  try {
    status = readFileSync('/proc/self/status', 'latin1');
  } catch {
    return process.memoryUsage.rss();
  }
  return kilobytesOf(status, 'RssAnon') * 1024 + kilobytesOf(status, 'RssShmem') * 1024;
}

function kilobytesOf(status: string, name: string): number {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status);
  return found === null ? 0 : Number(found[1]);
}
