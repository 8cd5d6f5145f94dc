// A server with a faulty disk: one fault at a time, at the n-th call of a round of work. After each fault, everything
// acknowledged must exist, before and after a restart, and the process must have continued or exited with a message.

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageFile } from '../../../src/common/package-files.js';
import { verifyDirectory } from '../../../src/offline.js';
import { restoreBackup } from '../../../src/storage/backup.js';
import {
  createCaller,
  type ServerProcess,
  startServerProcess,
} from '../../support/server-process.js';
import { type Call, FAULTS, type Fault, FaultyDisk, isPossible, WRITES } from './faults.js';
import { Model, type Send } from './model.js';
import { type Outcome, problemOf, Scenario, SEGMENT_ROWS } from './scenario.js';

/** What runs while the disk fails: a round of work, the start of the server, or a command without a server. */
export const PHASES = ['work', 'start', 'backup', 'restore'] as const;
export type Phase = (typeof PHASES)[number];

export interface Case {
  readonly phase: Phase;
  readonly calls: readonly Call[];
  readonly fault: Fault;
  /** Counts from 1. */
  readonly nth: number;
  /** Number of consecutive calls that fail; one by default. */
  readonly times?: number;
}

export interface CaseReport {
  /** Number of calls with the fault; 0 if the round made fewer calls. */
  readonly firedCount: number;
  /** The file of the last fault. */
  readonly path: string;
  /** How the process ended; null if it continued. */
  readonly end: string | null;
  readonly outcome: Outcome;
  /** What must not happen, but did. */
  readonly violations: readonly string[];
}

const SETTINGS = {
  SAGITTA_ENGINE: 'reference',
  SAGITTA_THREADS: '1',
  SAGITTA_SEGMENT_ROWS_MAX: String(SEGMENT_ROWS),
  // Even small segment files are mapped.
  SAGITTA_VALUES: 'mapped',
  SAGITTA_RETENTION_MS: '1000',
  SAGITTA_READ_RATE_MAX: '0',
  SAGITTA_WRITE_RATE_MAX: '0',
  SAGITTA_CONSOLE: 'off',
} as const;

const COMMAND_LINE = packageFile('scripts/sagitta.cjs');

interface Session {
  readonly server: ServerProcess;
  readonly send: Send;
  readonly close: () => void;
}

export class FaultyServer {
  readonly disk: FaultyDisk;
  readonly model = new Model();
  readonly #root: string;
  readonly #data: string;
  readonly #backups: string;
  readonly #logPath: string;
  readonly #logDescriptor: number;
  #session: Session | undefined;
  #key = '';
  #round = 0;
  #stopCount = 0;

  /** @param library from `compileFaults`. */
  static async start(library: string): Promise<FaultyServer> {
    const faulty = new FaultyServer(library);
    await faulty.#begin();
    const { send } = faulty.#session!;
    const made = await send('POST', '/v1/keys', { owner: 'test', scopes: ['admin'] });
    const { id, key } = made.json<{ id: string; key: string }>();
    faulty.#key = key;
    faulty.model.madeKey(id);
    await send(
      'POST',
      '/v1/collections',
      { id: 'kept', dimension: 8, metric: 'dot' },
      faulty.#headers,
    );
    faulty.model.changed('kept', new Map());
    return faulty;
  }

  private constructor(library: string) {
    this.#root = mkdtempSync(join(tmpdir(), 'sagitta-faults-'));
    const folder = join(this.#root, 'disk');
    this.#data = join(folder, 'data');
    this.#backups = join(folder, 'backups');
    mkdirSync(this.#backups, { recursive: true });
    this.#logPath = join(this.#root, 'log');
    this.#logDescriptor = openSync(this.#logPath, 'a');
    this.disk = new FaultyDisk(library, folder, join(this.#root, 'control'));
  }

  get #headers(): Record<string, string> {
    return this.#key === '' ? {} : { authorization: `Bearer ${this.#key}` };
  }

  get log(): string {
    return readFileSync(this.#logPath, 'utf8');
  }

  async #begin(): Promise<void> {
    const server = await startServerProcess({
      dataDirectory: this.#data,
      settings: { ...SETTINGS, SAGITTA_BACKUP_DIR: this.#backups, ...this.disk.environment },
      logDescriptor: this.#logDescriptor,
    });
    const { call, close } = createCaller(server.url);
    const send: Send = (method, path, body, headers = {}) =>
      call(method, path, body, { ...this.#headers, ...headers });
    this.#session = { server, send, close };
  }

  /** Does the work of a phase without a fault. Returns the number of calls of each kind. */
  async count(phase: Phase): Promise<Readonly<Record<Call, number>>> {
    const { violations } = await this.run({ phase, calls: [], fault: 'eio', nth: 1 });
    if (violations.length > 0) throw new Error(`without a fault: ${violations.join('; ')}`);
    return this.disk.counts;
  }

  /** Does the work of a phase with the fault and checks the data afterwards. */
  run(fault: Case): Promise<CaseReport> {
    const mayBeKilled = FAULTS[fault.fault].mode === 'kill';
    const arm = () => this.disk.arm(fault);
    if (fault.phase === 'work') return this.#runRound(arm, mayBeKilled);
    if (fault.phase === 'start') return this.#runStart(arm, mayBeKilled);
    return this.#runCommand(fault.phase, arm, mayBeKilled);
  }

  /** A process that starts with the fault either works or says why it does not. */
  async #runStart(arm: () => void, mayBeKilled: boolean): Promise<CaseReport> {
    await this.#stop();
    const logStart = statSync(this.#logPath).size;
    arm();
    let end: string | null = null;
    try {
      await this.#begin();
    } catch (error) {
      end = (error as Error).message;
      const log = readFileSync(this.#logPath).subarray(logStart).toString();
      if (end.includes('SIG') && !mayBeKilled) this.model.violate('a signal ended the start');
      else if (log === '' && !mayBeKilled) this.model.violate('the start ended without a message');
    }
    this.disk.disarm();
    const { fired } = this.disk;
    if (end !== null) await this.#begin();
    await this.model.check(this.#session!.send);
    return this.#report(fired, end);
  }

  /** A command either creates a complete directory, or none and says why. */
  async #runCommand(
    command: 'backup' | 'restore',
    arm: () => void,
    mayBeKilled: boolean,
  ): Promise<CaseReport> {
    await this.#stop();
    const target = join(this.#root, 'disk', command);
    const source = this.model.lastBackup?.folder ?? '';
    const words =
      command === 'backup'
        ? ['backup', '--data-dir', this.#data, '--to', target]
        : ['restore', source, '--no-verify', '--data-dir', target];
    arm();
    const { status, signal, stderr } = spawnSync(process.execPath, [COMMAND_LINE, ...words], {
      env: { ...process.env, ...this.disk.environment },
      encoding: 'utf8',
    });
    this.disk.disarm();
    const { fired } = this.disk;
    const end = status === 0 ? null : (signal ?? stderr.trim());
    // If a command is killed after its last step, the directory is complete.
    if (status === 0 || (signal !== null && existsSync(target)))
      await this.#verify(target, command);
    else if (existsSync(target)) this.model.violate(`${command} failed, but left ${target}`);
    if (signal !== null && !mayBeKilled) this.model.violate(`${command} was ended by ${signal}`);
    if (signal === null && end === '') this.model.violate(`${command} failed without a message`);
    rmSync(target, { recursive: true, force: true });
    await this.#verify(this.#data, 'after the command');
    return this.#report(fired, end);
  }

  #report(
    { count, path }: FaultyDisk['fired'],
    end: string | null,
    outcome: Outcome = { acknowledged: 0, refused: new Map() },
  ): CaseReport {
    const violations = this.model.takeViolations();
    return { firedCount: count, path, end, outcome, violations };
  }

  /** Runs a round in which a share of the writes is short. */
  runRandom(options: { share: number; seed: number }): Promise<CaseReport> {
    return this.#runRound(() => this.disk.armRandom({ calls: WRITES, ...options }));
  }

  async #runRound(arm: () => void, mayBeKilled = false): Promise<CaseReport> {
    if (this.#session === undefined) await this.#begin();
    const { server, send, close } = this.#session!;
    const logStart = statSync(this.#logPath).size;
    const round = ++this.#round;
    const { model } = this;
    const scenario = new Scenario({ send, model, round, backupDirectory: this.#backups });
    arm();
    const isEnded = await scenario.run().then(
      () => false,
      (error: NodeJS.ErrnoException) => {
        if (error.code === undefined) model.violate(error.message);
        return error.code !== undefined;
      },
    );
    this.disk.disarm();
    const { fired } = this.disk;
    let end: string | null = null;
    if (isEnded) {
      close();
      end = await endOf(server);
      if (end === null) model.violate('the process broke a connection');
      const isExpected = mayBeKilled && end === 'SIGKILL';
      const log = readFileSync(this.#logPath).subarray(logStart).toString();
      if (end?.startsWith('SIG') && !isExpected) model.violate(`the process was ended by ${end}`);
      else if (!isExpected && !/"level":(50|60)/.test(log))
        model.violate('ended without a message');
      await this.restart();
    } else {
      await this.#checkRunning(scenario);
    }
    this.#removeOldBackups();
    return this.#report(fired, end, scenario.outcome);
  }

  /** After a fault, the process works again or says that it does not. */
  async #checkRunning(scenario: Scenario): Promise<void> {
    const { send } = this.#session!;
    await this.model.check(send).catch((error: Error) => this.model.violate(error.message));
    const reply = await scenario.writeOnce();
    if (reply.status === 200) return;
    const readiness = await send('GET', '/readyz');
    if (readiness.status === 200) {
      const { code } = problemOf(reply);
      this.model.violate(`ready, but a later write is refused: ${reply.status} ${code}`);
    }
  }

  /** Ends the process, verifies the data directory, and checks the data of a new process. */
  async restart(): Promise<void> {
    await this.#stop();
    await this.#begin();
    await this.model.check(this.#session!.send);
  }

  /** Alternates between a regular stop and a loss of power. */
  async #stop(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session === undefined) return;
    session.close();
    this.#stopCount++;
    await (this.#stopCount % 2 === 0 ? session.server.stop() : session.server.kill());
    await this.#verify(this.#data, 'after the end');
  }

  async #verify(directory: string, when: string): Promise<void> {
    const { findings } = await verifyDirectory(directory);
    for (const { severity, where, what } of findings) {
      if (severity === 'error') this.model.violate(`${when}: ${where}: ${what}`);
    }
  }

  #removeOldBackups(): void {
    const last = this.model.lastBackup?.folder;
    for (const name of readdirSync(this.#backups)) {
      const folder = join(this.#backups, name);
      if (folder !== last) rmSync(folder, { recursive: true, force: true });
    }
  }

  /** Deletes a row that the model contains: its loss must be reported. */
  async plantLoss(): Promise<string[]> {
    const { send } = this.#session!;
    const id = [...this.model.rowsOf('kept').keys()][0]!;
    await send('DELETE', `/v1/collections/kept/vectors/${id}`);
    await this.model.check(send);
    return this.model.takeViolations();
  }

  /** Restores the last backup and checks its contents. */
  async checkLastBackup(): Promise<string[]> {
    const last = this.model.lastBackup;
    if (last === undefined) return ['there is no backup'];
    const directory = join(this.#root, 'restored');
    await restoreBackup(last.folder, directory);
    const server = await startServerProcess({ dataDirectory: directory, settings: SETTINGS });
    const { call, close } = createCaller(server.url);
    try {
      await last.model.check((method, path, body) => call(method, path, body, this.#headers));
    } finally {
      close();
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    }
    return last.model.takeViolations();
  }

  async close(): Promise<void> {
    this.#session?.close();
    await this.#session?.server.kill();
    this.disk.close();
    closeSync(this.#logDescriptor);
    rmSync(this.#root, { recursive: true, force: true });
  }
}

export interface PlanOptions {
  readonly phases: readonly Phase[];
  readonly calls: readonly Call[];
  readonly faults: readonly Fault[];
  /** One of this many calls has the fault, chosen by the random numbers. */
  readonly every: number;
  readonly times: number;
  readonly random: () => number;
}

/** The cases of a run, based on the calls that the phases make without faults. */
export async function planCases(
  server: FaultyServer,
  { phases, calls, faults, every, times, random }: PlanOptions,
): Promise<Case[]> {
  const cases: Case[] = [];
  // This makes the backup that is restored.
  if (server.model.lastBackup === undefined) await server.count('work');
  for (const phase of phases) {
    const counts = await server.count(phase);
    for (const call of calls) {
      for (const fault of faults.filter((name) => isPossible(call, name))) {
        for (let at = 1; at <= counts[call]; at += every) {
          const nth = Math.min(at + Math.floor(random() * every), counts[call]);
          cases.push({ phase, calls: [call], fault, nth, times });
        }
      }
    }
  }
  return cases;
}

/** How a process with a broken connection ended; null if it has not. */
async function endOf(server: ServerProcess): Promise<string | null> {
  if (server.exit === null) {
    await once(server.child, 'exit', { signal: AbortSignal.timeout(60_000) }).catch(() => {});
  }
  return server.exit;
}
