// Finds processes by an environment variable, which they inherit from their ancestors even after leaving the process
// group, and kills processes that may have ended already.

import { readdirSync, readFileSync } from 'node:fs';

/** Ids of all processes of this user that have the variable set to the value. */
export function processesWith(variable, value) {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return ids.map(Number).filter((id) => {
    try {
      const environment = readFileSync(`/proc/${id}/environ`, 'latin1').split('\0');
      return environment.includes(`${variable}=${value}`);
    } catch {
      // The process has ended or belongs to another user.
      return false;
    }
  });
}

/** Kills a process, or a process group by its negative id, unless it has ended. */
export function killIfRunning(id) {
  try {
    process.kill(id, 'SIGKILL');
  } catch {
    // The process has ended.
  }
}
