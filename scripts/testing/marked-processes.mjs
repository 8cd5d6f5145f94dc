// Finds processes by a variable of their environment, which they have in common with whatever started them, also when
// they have left its process group, and ends processes that may have ended already.

import { readdirSync, readFileSync } from 'node:fs';

/** The ids of all processes of this user in whose environment the variable has the value. */
export function processesWith(variable, value) {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return ids.map(Number).filter((id) => {
    try {
      const environment = readFileSync(`/proc/${id}/environ`, 'latin1').split('\0');
      return environment.includes(`${variable}=${value}`);
    } catch {
      // It has ended, or is another user's.
      return false;
    }
  });
}

/** Kills a process, or a process group by its negative id, unless it has ended. */
export function killIfRunning(id) {
  try {
    process.kill(id, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
