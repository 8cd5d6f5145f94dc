// Holds a process to a share of a core, or to so much memory, by a control group, of either version of them.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const ROOT = '/sys/fs/cgroup';
const PERIOD_US = 100_000;
const REMOVE_TRIES = 50;

export class ControlGroup {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Of a core. Null where control groups cannot be made. */
  static ofCpu(name: string, share: number): ControlGroup | null {
    const quota = String(share * PERIOD_US);
    return ControlGroup.#create('cpu', name, (isOld) =>
      isOld
        ? { 'cpu.cfs_period_us': String(PERIOD_US), 'cpu.cfs_quota_us': quota }
        : { 'cpu.max': `${quota} ${PERIOD_US}` },
    );
  }

  /** Of memory, what it has of files included. Null where control groups cannot be made. */
  static ofMemory(name: string, byteCount: number): ControlGroup | null {
    return ControlGroup.#create('memory', name, (isOld) => ({
      [isOld ? 'memory.limit_in_bytes' : 'memory.max']: String(byteCount),
    }));
  }

  static #create(
    controller: string,
    name: string,
    settingsOf: (isOld: boolean) => Readonly<Record<string, string>>,
  ): ControlGroup | null {
    const isOld = existsSync(join(ROOT, controller));
    const folder = join(ROOT, isOld ? controller : '', `sagitta-bench-${process.pid}-${name}`);
    const group = new ControlGroup(folder);
    try {
      mkdirSync(folder);
      for (const [file, text] of Object.entries(settingsOf(isOld))) {
        writeFileSync(join(folder, file), text);
      }
    } catch {
      void group.remove();
      return null;
    }
    // A group that can be made is not always one that can be joined.
    const [command, ...words] = group.prefix;
    if (spawnSync(command!, [...words, 'true'], { stdio: 'ignore' }).status === 0) return group;
    void group.remove();
    return null;
  }

  /** A command that runs another one in the group. */
  get prefix(): readonly string[] {
    return ['sh', '-c', `echo $$ > ${this.#folder}/cgroup.procs && exec "$@"`, 'sh'];
  }

  /** When its processes have ended. */
  async remove(): Promise<void> {
    for (let i = 0; i < REMOVE_TRIES; i++) {
      try {
        if (existsSync(this.#folder)) rmdirSync(this.#folder);
        return;
      } catch {
        await sleep(20);
      }
    }
  }
}

/** The system forgets what it has of files. Returns false where it may not be told so. */
export function forgetFiles(): boolean {
  try {
    writeFileSync('/proc/sys/vm/drop_caches', '1');
    return true;
  } catch {
    return false;
  }
}
