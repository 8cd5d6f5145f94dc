// A server with a faulty disk: one fault at a time, at the n-th call of a round of work. After each, whatever
// was acknowledged must be there, before and after a restart, and the process has gone on or ended with a message.

import { mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, closeSync, statSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { restoreBackup, verifyDirectory } from '../../../src/offline.js';
import { createCaller, type ServerProcess, startServerProcess } from '../../support/server-process.js';
import { type Call, type Fault, FAULTS, FaultyDisk } from './faults.js';
import { Model, type Send } from './model.js';
import { type Outcome, problemOf, Scenario, SEGMENT_ROWS } from './scenario.js';

export interface Case {
  readonly calls: readonly Call[];
  readonly fault: Fault;
  /** From 1. */
  readonly nth: number;
  /** So many calls in a row fail; by default one. */
  readonly times?: number;
}

export interface CaseReport {
  /** How many calls had the fault; 0 if the round made fewer calls. */
  readonly firedCount: number;
  /** The file of the last fault. */
  readonly path: string;
  /** How the process ended; null when it went on. */
  readonly end: string | null;
  readonly outcome: Outcome;
  /** What must not be. */
  readonly violations: readonly string[];
}

const SETTINGS = {
  SAGITTA_ENGINE: 'reference',
  SAGITTA_THREADS: '1',
  SAGITTA_SEGMENT_ROWS_MAX: String(SEGMENT_ROWS),
  // Segment files are mapped however small they are.
  SAGITTA_VALUES: 'mapped',
  SAGITTA_RETENTION_MS: '1000',
  SAGITTA_READ_RATE_MAX: '0',
  SAGITTA_WRITE_RATE_MAX: '0',
  SAGITTA_CONSOLE: 'off',
} as const;

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

  /** @param library from `compileFaults`. */
  static async start(library: string): Promise<FaultyServer> {
    const faulty = new FaultyServer(library);
    await faulty.#begin();
    const { send } = faulty.#session!;
    const made = await send('POST', '/v1/keys', { owner: 'test', scopes: ['admin'] });
    const { id, key } = made.json<{ id: string; key: string }>();
    faulty.#key = key;
    faulty.model.madeKey(id);
    await send('POST', '/v1/collections', { id: 'kept', dimension: 8, metric: 'dot' }, faulty.#headers);
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

  /** Runs a round without a fault. Returns how many calls of each kind it makes. */
  async count(): Promise<Readonly<Record<Call, number>>> {
    this.disk.arm({ calls: [], fault: 'eio', nth: 1 });
    const { violations } = await this.#runRound(() => {});
    if (violations.length > 0) throw new Error(`without a fault: ${violations.join('; ')}`);
    return this.disk.counts;
  }

  /** Runs a round with the fault, and checks what is there afterwards. */
  run(fault: Case): Promise<CaseReport> {
    return this.#runRound(() => this.disk.arm(fault), FAULTS[fault.fault].mode === 'kill');
  }

  /** Runs a round in which a share of the writes is short. */
  runRandom(options: { share: number; seed: number }): Promise<CaseReport> {
    const calls: readonly Call[] = ['write', 'pwrite', 'writev', 'pwritev', 'copy'];
    return this.#runRound(() => this.disk.armRandom({ calls, ...options }));
  }

  async #runRound(arm: () => void, mayBeKilled = false): Promise<CaseReport> {
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
    const { count, path } = this.disk.fired;
    let end: string | null = null;
    if (isEnded) {
      close();
      end = await endOf(server);
      if (end === null) model.violate('the process broke a connection');
      const isExpected = mayBeKilled && end === 'SIGKILL';
      const log = readFileSync(this.#logPath).subarray(logStart).toString();
      if (end?.startsWith('SIG') && !isExpected) model.violate(`the process was ended by ${end}`);
      else if (!isExpected && !/"level":(50|60)/.test(log)) model.violate('ended without a message');
      await this.restart();
    } else {
      await this.#checkRunning(scenario);
    }
    this.#removeOldBackups();
    return {
      firedCount: count,
      path,
      end,
      outcome: scenario.outcome,
      violations: model.takeViolations(),
    };
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

  /** Ends the process, verifies the data directory, and checks what a new process has. */
  async restart(): Promise<void> {
    const { server, close } = this.#session!;
    close();
    await (this.#round % 2 === 0 ? server.stop() : server.kill());
    const { findings } = await verifyDirectory(this.#data);
    for (const { severity, where, what } of findings) {
      if (severity === 'error') this.model.violate(`after the end: ${where}: ${what}`);
    }
    await this.#begin();
    await this.model.check(this.#session!.send);
  }

  #removeOldBackups(): void {
    const last = this.model.lastBackup?.folder;
    for (const name of readdirSync(this.#backups)) {
      const folder = join(this.#backups, name);
      if (folder !== last) rmSync(folder, { recursive: true, force: true });
    }
  }

  /** Restores the last backup and checks what it has. */
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

/** How a process ended whose connection broke; null when it has not. */
async function endOf({ child }: ServerProcess): Promise<string | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const waiting = AbortSignal.timeout(60_000);
    await once(child, 'exit', { signal: waiting }).catch(() => {});
  }
  return child.signalCode ?? (child.exitCode === null ? null : `exit ${child.exitCode}`);
}
