// Limits a process to a share of a core or to an amount of memory, by a control group of version 1 or 2.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const ROOT = '/sys/fs/cgroup';
/** Short, so that a share is like a slower core, not like one that stops for most of a tenth of a second. */
const PERIOD_US = 10_000;
const REMOVE_TRIES = 50;

export class ControlGroup {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Limits processor time to a share of a core. Returns null where control groups cannot be created. */
  static ofCpu(name: string, share: number): ControlGroup | null {
    const quota = String(share * PERIOD_US);
    return ControlGroup.#create('cpu', name, (isVersion1) =>
      isVersion1
        ? { 'cpu.cfs_period_us': String(PERIOD_US), 'cpu.cfs_quota_us': quota }
        : { 'cpu.max': `${quota} ${PERIOD_US}` },
    );
  }

  /** Limits memory, including cached files. Returns null where control groups cannot be created. */
  static ofMemory(name: string, byteCount: number): ControlGroup | null {
    return ControlGroup.#create('memory', name, (isVersion1) => ({
      [isVersion1 ? 'memory.limit_in_bytes' : 'memory.max']: String(byteCount),
    }));
  }

  static #create(
    controller: string,
    name: string,
    settingsOf: (isVersion1: boolean) => Readonly<Record<string, string>>,
  ): ControlGroup | null {
    const isVersion1 = existsSync(join(ROOT, controller));
    const folder = join(ROOT, isVersion1 ? controller : '', `sagitta-bench-${process.pid}-${name}`);
    const group = new ControlGroup(folder);
    try {
      mkdirSync(folder);
      for (const [file, text] of Object.entries(settingsOf(isVersion1))) {
        writeFileSync(join(folder, file), text);
      }
    } catch {
      void group.remove();
      return null;
    }
    // A group that can be created cannot always be joined.
    const [command, ...words] = group.prefix;
    if (spawnSync(command!, [...words, 'true'], { stdio: 'ignore' }).status === 0) return group;
    void group.remove();
    return null;
  }

  /** The command prefix that runs a command in the group. */
  get prefix(): readonly string[] {
    return ['sh', '-c', `echo $$ > ${this.#folder}/cgroup.procs && exec "$@"`, 'sh'];
  }

  /** Removes the group once its processes have ended. */
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

/** Drops the system's cache of file contents. Returns false where this process may not do so. */
export function dropPageCache(): boolean {
  try {
    writeFileSync('/proc/sys/vm/drop_caches', '1');
    return true;
  } catch {
    return false;
  }
}
