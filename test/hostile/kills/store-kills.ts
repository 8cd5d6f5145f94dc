// Kills a process that commits to a store with short logs, at a random moment or at the n-th system call of a kind, so
// that each step of a commit, of a new log, of a base and of the removal of files is the last one at some point.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { requireCommitted } from '../../storage/committed.js';
import { type Call, FaultyDisk } from '../disk/faults.js';

const COMMITTER = fileURLToPath(new URL('../../storage/committer.js', import.meta.url));
/** Holds a few dozen commits, so that a base is written every tenth of a second. */
const LOG_BYTES_MAX = 60_000;
/** A process that does not reach the call is killed after this time. */
const LASTS_MS_MAX = 1_500;
const RANDOM_MS_MAX = 600;

/** Steps of the store; Node's own calls are not on files below the folder. */
const STEPS = {
  dsync: 300,
  create: 20,
  pwrite: 100,
  fsync: 30,
  fdatasync: 10,
  rename: 8,
  ftruncate: 20,
  unlink: 20,
} as const satisfies Partial<Record<Call, number>>;
type Step = keyof typeof STEPS;

export interface KillRow {
  kills: number;
  /** Kills at the intended call. */
  met: number;
  violations: number;
}

export class StoreKills {
  readonly rows: Record<string, KillRow> = {};
  readonly violations: string[] = [];
  readonly #root = mkdtempSync(join(tmpdir(), 'sagitta-kills-'));
  readonly #folder = join(this.#root, 'disk');
  readonly #disk: FaultyDisk;
  readonly #random: () => number;
  #acknowledged = 0;

  /** @param library from `compileFaults`. */
  constructor(library: string, random: () => number) {
    mkdirSync(this.#folder);
    this.#disk = new FaultyDisk(library, this.#folder, join(this.#root, 'control'));
    this.#random = random;
  }

  get acknowledgedCount(): number {
    return this.#acknowledged;
  }

  /** Every fifth kill is at a random moment. */
  async round(number: number): Promise<void> {
    const steps = Object.keys(STEPS) as Step[];
    const call = number % 5 === 0 ? undefined : steps[number % steps.length]!;
    const nth = call === undefined ? 1 : 1 + Math.floor(this.#random() * STEPS[call]);
    this.#disk.arm({ calls: call === undefined ? [] : [call], fault: 'kill', nth });
    await this.#commitUntilKilled(
      call === undefined ? this.#random() * RANDOM_MS_MAX : LASTS_MS_MAX,
    );
    const { count, path } = this.#disk.fired;
    this.#disk.disarm();
    const name = call === undefined ? 'at random' : `${call} ${count === 0 ? '' : kindOf(path)}`;
    this.rows[name] ??= { kills: 0, met: 0, violations: 0 };
    const row = this.rows[name];
    row.kills++;
    row.met += count;
    try {
      this.#acknowledged = await requireCommitted(join(this.#folder, 'data'), this.#acknowledged);
    } catch (error) {
      row.violations++;
      this.violations.push(`kill ${number}, ${name} at ${nth}: ${(error as Error).message}`);
      rmSync(join(this.#folder, 'data'), { recursive: true, force: true });
      this.#acknowledged = 0;
    }
  }

  async #commitUntilKilled(afterMs: number): Promise<void> {
    const words = [COMMITTER, join(this.#folder, 'data'), 'busy', String(LOG_BYTES_MAX)];
    const child = spawn(process.execPath, words, {
      env: { ...process.env, ...this.#disk.environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const closed = once(child, 'close');
    const ending = new AbortController();
    const timer = sleep(afterMs, undefined, { signal: ending.signal }).then(
      () => child.kill('SIGKILL'),
      () => {},
    );
    const [, signal] = (await closed) as [number | null, string | null];
    ending.abort();
    await timer;
    if (signal !== 'SIGKILL')
      this.violations.push(`the process has ended by itself: ${output.slice(-200)}`);
    const lines = output.slice(0, output.lastIndexOf('\n') + 1).split('\n');
    for (const line of lines) this.#acknowledged = Math.max(this.#acknowledged, Number(line) || 0);
  }

  close(): void {
    this.#disk.close();
    rmSync(this.#root, { recursive: true, force: true });
  }
}

/** The kind of file that a call was about: `base`, `log`, `mark`, or a folder. */
function kindOf(path: string): string {
  return extname(path.replace('.unfinished', '')).slice(1) || 'folder';
}
