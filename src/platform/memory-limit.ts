// The memory that the process may use: the limit of its container, or the memory of the machine. Also the part of it
// that is in use and cannot be reclaimed by the system.

import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';

/** Memory limit in bytes. Without a container limit, the system reports 0 or more than any machine has. */
export function memoryOfProcess(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/**
 * Resident bytes without mapped files, which the system can drop when it needs their memory. On systems other than
 * Linux, all resident memory.
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
