// A group of processes with a memory limit (cgroup version 1 or 2), and the kernel's counters for it.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Version {
  readonly folder: string;
  readonly limit: string;
  /** Swap in addition to the limit; in version 1, the sum of the two. */
  readonly swap: string;
  readonly kills: { readonly file: string; readonly counter: string };
  /** Memory that is not a copy of a file. */
  readonly anonymous: string;
}

const VERSIONS: readonly Version[] = [
  {
    folder: '/sys/fs/cgroup/memory',
    limit: 'memory.limit_in_bytes',
    swap: 'memory.memsw.limit_in_bytes',
    kills: { file: 'memory.oom_control', counter: 'oom_kill' },
    anonymous: 'rss',
  },
  {
    folder: '/sys/fs/cgroup',
    limit: 'memory.max',
    swap: 'memory.swap.max',
    kills: { file: 'memory.events', counter: 'oom_kill' },
    anonymous: 'anon',
  },
];

export class MemoryCgroup {
  readonly #version: Version;
  readonly #folder: string;

  private constructor(version: Version, folder: string) {
    this.#version = version;
    this.#folder = folder;
  }

  /** Returns null if the process may not create a cgroup. No swap is used beyond the limit. */
  static create(name: string, bytesMax: number): MemoryCgroup | null {
    for (const version of VERSIONS) {
      const folder = join(version.folder, name);
      try {
        mkdirSync(folder);
      } catch {
        continue;
      }
      try {
        writeFileSync(join(folder, version.limit), String(bytesMax));
        const swap = join(folder, version.swap);
        const isSum = version.swap.includes('memsw');
        if (existsSync(swap)) writeFileSync(swap, isSum ? String(bytesMax) : '0');
        const cgroup = new MemoryCgroup(version, folder);
        execFileSync(cgroup.prefix[0]!, [...cgroup.prefix.slice(1), 'true']);
        return cgroup;
      } catch {
        rmdirSync(folder);
      }
    }
    return null;
  }

  /** A command prefix that runs a command in the group. */
  get prefix(): readonly string[] {
    const processes = join(this.#folder, 'cgroup.procs');
    return ['sh', '-c', `echo $$ > ${processes} && exec "$@"`, 'sh'];
  }

  /** How often the kernel has killed a process of the group for lack of memory. */
  get killCount(): number {
    const { file, counter } = this.#version.kills;
    return this.#read(file, counter);
  }

  /** Bytes of memory that are not copies of files. */
  get anonymousBytes(): number {
    return this.#read('memory.stat', this.#version.anonymous);
  }

  /** Must be called after its processes have ended. */
  remove(): void {
    rmdirSync(this.#folder);
  }

  #read(file: string, counter: string): number {
    const text = readFileSync(join(this.#folder, file), 'utf8');
    return Number(new RegExp(`^${counter} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  }
}
