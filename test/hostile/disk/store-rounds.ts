// The store alone on a faulty disk, in a process that has faults.c preloaded and controls it itself. Without a server a
// round takes milliseconds, and a failed store is reopened in the same process, so each of the calls can have each
// fault. Arguments: the folder, the control file, and a plan as JSON; prints a report as JSON.

import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyDirectory } from '../../../src/offline.js';
import { JOURNAL_FOLDER, UNFINISHED_SUFFIX } from '../../../src/storage/journal-files.js';
import { openStore } from '../../../src/storage/open-store.js';
import type { DiskStore, StoreOperation } from '../../../src/storage/store.js';
import { createRandom } from '../../database/harness.js';
import { CALLS, type Call, FAULTS, type Fault, FaultyDisk, isPossible, WRITES } from './faults.js';

export interface StorePlan {
  readonly calls: readonly Call[];
  readonly faults: readonly Fault[];
  /** One of this many calls has the fault, chosen by the seed. */
  readonly every: number;
  readonly seed: number;
  /** Number of rounds with random short writes. */
  readonly randomRounds: number;
  /** Plants the loss of a commit, to test that it is found. */
  readonly isLossPlanted?: boolean;
}

export interface StoreReport {
  /** By call and fault. */
  readonly rows: Readonly<Record<string, StoreRow>>;
  /** What must not happen, but did. */
  readonly violations: readonly string[];
}

export interface StoreRow {
  cases: number;
  fired: number;
  /** Rounds in which a commit was refused for lack of space, something else failed, or the store ended. */
  full: number;
  refused: number;
  failed: number;
  /** Rounds in which the store warned, for example because a base could not be written. */
  warned: number;
}

/** The store is reopened after this many rounds even if it has not failed. */
const REOPEN_ROUNDS = 8;
const RECORD_BYTES = 9_000;
/** Small enough that a round fills several logs and a base follows. */
const LOG_BYTES_MAX = 25_000;
const LOG_RECORDS = 5;
const BLOB_BYTES = 20_000;
/** Number of checks for a base, and the pause between them. */
const LOOKS_MAX = 200;
const LOOK_MS = 3;

/** A state of the store: keys and records with the byte that fills them. */
type State = ReadonlyMap<string, number>;

class StoreRounds {
  readonly #disk: FaultyDisk;
  readonly #folder: string;
  readonly #data: string;
  readonly violations: string[] = [];
  #store: DiskStore | undefined;
  #hasFailed = false;
  #hasWarned = false;
  #state: State = new Map();
  /** The state if an unacknowledged commit took effect. */
  #other: State | undefined;
  #sequence = 0;
  #round = 0;
  #row: StoreRow = newRow();

  constructor(folder: string, disk: FaultyDisk) {
    this.#folder = folder;
    this.#data = join(folder, 'data');
    this.#disk = disk;
  }

  /** @param what names the case in violations. */
  async run(what: string, row: StoreRow, arm: () => void): Promise<void> {
    this.#row = row;
    row.cases++;
    await this.#open();
    arm();
    await this.#work(what);
    const { count } = this.#disk.fired;
    if (count > 0) row.fired++;
    this.#disk.disarm();
    await this.#checkBackup(what);
    if (this.#hasFailed) row.failed++;
    if (this.#hasWarned) row.warned++;
    const isReopened = count > 0 || this.#hasFailed || this.#round % REOPEN_ROUNDS === 0;
    if (!isReopened) this.#check(what);
    else await this.#reopen(what);
    if (count > 0) await this.#readAgain(what);
  }

  /** The page cache eventually loses what a failed write left there; nothing built on it must be lost. */
  async #readAgain(what: string): Promise<void> {
    await this.#append(what, 'kept');
    this.#disk.evict();
    await this.#reopen(`${what}, read again`);
  }

  /** Creates a store with the fault. Whatever the result, creating one afterwards without the fault must succeed. */
  async runNew(what: string, row: StoreRow, arm: () => void): Promise<void> {
    this.#row = row;
    row.cases++;
    const directory = join(this.#folder, 'new');
    rmSync(directory, { recursive: true, force: true });
    arm();
    try {
      await (await openStore({ directory, mapping: 'mapped' })).close();
    } catch (error) {
      this.#refuse(what, error);
    }
    if (this.#disk.fired.count > 0) row.fired++;
    this.#disk.disarm();
    try {
      await (await openStore({ directory })).close();
    } catch (error) {
      this.violations.push(`${what}: cannot be made later: ${(error as Error).message}`);
    }
  }

  async #open(): Promise<void> {
    this.#hasFailed = false;
    this.#hasWarned = false;
    this.#store ??= await openStore({
      directory: this.#data,
      mapping: 'mapped',
      logBytesMax: LOG_BYTES_MAX,
      warn: () => {
        this.#hasWarned = true;
      },
      onFailure: () => {
        this.#hasFailed = true;
      },
    });
  }

  async #close(what: string): Promise<void> {
    const store = this.#store;
    this.#store = undefined;
    await store?.close().catch((error: unknown) => {
      this.violations.push(`${what}: cannot be closed: ${(error as Error).message}`);
    });
  }

  /** With the fault, a start may be refused, but must not change the data. */
  async #restart(what: string): Promise<void> {
    if (this.#hasFailed) return;
    await this.#close(what);
    try {
      await this.#open();
    } catch (error) {
      this.#refuse(what, error);
      this.#hasFailed = true;
    }
  }

  /** For everything but commits. */
  #refuse(what: string, error: unknown): void {
    this.#row.refused++;
    const { code } = error as { code?: unknown };
    if (code !== undefined) return;
    this.violations.push(`${what}: an unclear error: ${(error as Error).message}`);
  }

  async #reopen(what: string): Promise<void> {
    await this.#close(what);
    const { findings } = await verifyDirectory(this.#data);
    for (const { severity, where, what: found } of findings) {
      if (severity === 'error' && !isOfDatabase(found)) {
        this.violations.push(`${what}: verify: ${where}: ${found}`);
      }
    }
    try {
      await this.#open();
    } catch (error) {
      this.violations.push(`${what}: cannot be opened: ${(error as Error).message}`);
      await this.#beginAnew();
    }
    this.#check(what);
  }

  /** Continues with the other cases. */
  async #beginAnew(): Promise<void> {
    rmSync(this.#data, { recursive: true });
    this.#state = new Map();
    this.#other = undefined;
    this.#sequence = 0;
    await this.#open();
  }

  async #work(what: string): Promise<void> {
    const round = ++this.#round;
    const log = `log-${round}`;
    for (let i = 0; i < LOG_RECORDS; i++) await this.#append(what, log);
    await this.#blob(what, `segments/${round}`);
    await this.#append(what, 'kept');
    await this.#commit(what, [
      { kind: 'put', key: ['k', String(round % 7)], value: new Uint8Array([round % 251]) },
    ]);
    await this.#backup(what);
    this.#read(what);
    await this.#restart(what);
    await this.#commit(what, [{ kind: 'trim', log: 'kept', throughSequence: this.#sequence - 20 }]);
    await this.#commit(what, [{ kind: 'dropLog', log }]);
    await this.#append(what, 'kept');
    await this.#untilBased();
  }

  async #untilBased(): Promise<void> {
    const isBasing = () =>
      readdirSync(join(this.#data, JOURNAL_FOLDER)).some((name) =>
        name.endsWith(UNFINISHED_SUFFIX),
      );
    for (let i = 0; i < LOOKS_MAX; i++) {
      await sleep(LOOK_MS);
      if (!isBasing()) return;
    }
  }

  /** A record is read exactly as written, or not at all. */
  #read(what: string): void {
    if (this.#hasFailed) return;
    try {
      stateOf(this.#store!);
    } catch (error) {
      this.#refuse(what, error);
    }
  }

  #append(what: string, log: string): Promise<void> {
    const sequence = ++this.#sequence;
    const record = new Uint8Array(RECORD_BYTES).fill(sequence % 251);
    return this.#commit(what, [{ kind: 'append', log, sequence, record }]);
  }

  async #commit(what: string, operations: StoreOperation[]): Promise<void> {
    if (this.#hasFailed) return;
    const after = applied(this.#state, operations);
    try {
      await this.#store!.commit(operations);
      this.#state = after;
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code === 'storage_full') this.#row.full++;
      else if (code !== 'stopping') {
        this.violations.push(`${what}: an unclear error: ${(error as Error).message}`);
      }
      // A commit that filled the disk must leave nothing.
      if (code === 'stopping') this.#other = after;
      // The sequence of a failed record may be used again, as the writer of a collection does.
      if (operations[0]!.kind === 'append') this.#sequence--;
    }
  }

  /** A blob is complete or does not exist. */
  async #blob(what: string, name: string): Promise<void> {
    if (this.#hasFailed) return;
    const store = this.#store!;
    const bytes = new Uint8Array(BLOB_BYTES).fill(7);
    try {
      await store.writeBlob(name, [bytes, bytes]);
    } catch (error) {
      this.#refuse(what, error);
    }
    try {
      const found = (await store.mapBlob(name))?.bytes ?? (await store.readBlob(name));
      const isWhole = found?.byteLength === 2 * BLOB_BYTES && found.every((byte) => byte === 7);
      if (found !== undefined && !isWhole) this.violations.push(`${what}: half a blob`);
      await store.copyBlob(name, `${name}-copy`);
      await store.removeBlob(name);
      await store.removeBlob(`${name}-copy`);
    } catch (error) {
      this.#refuse(what, error);
    }
  }

  async #backup(what: string): Promise<void> {
    if (this.#hasFailed) return;
    const folder = join(this.#folder, 'backup');
    const choose = () => Promise.resolve({ blobNames: [], collectionCount: 0 });
    const isMade = await this.#store!.backup(folder, choose).then(
      () => true,
      (error: unknown) => {
        this.#refuse(what, error);
        return false;
      },
    );
    if (!isMade && existsSync(folder)) this.violations.push(`${what}: half a backup`);
  }

  /** Runs without the fault, which is meant for the store. */
  async #checkBackup(what: string): Promise<void> {
    const folder = join(this.#folder, 'backup');
    if (!existsSync(folder)) return;
    const { findings } = await verifyDirectory(folder);
    for (const { severity, what: found } of findings) {
      if (severity === 'error' && !isOfDatabase(found)) {
        this.violations.push(`${what}: backup: ${found}`);
      }
    }
    rmSync(folder, { recursive: true });
  }

  #check(what: string): void {
    let found: State;
    try {
      found = stateOf(this.#store!);
    } catch (error) {
      this.violations.push(`${what}: cannot be read: ${(error as Error).message}`);
      return;
    }
    if (this.#other !== undefined && isSame(found, this.#other)) this.#state = this.#other;
    else if (!isSame(found, this.#state)) {
      this.violations.push(`${what}: ${found.size} entries, expected ${this.#state.size}`);
      this.#state = found;
    }
    this.#other = undefined;
    // An unacknowledged commit may exist, so its sequence is taken.
    for (const place of this.#state.keys()) {
      const sequence = Number(place.split(' ')[1] ?? 0);
      this.#sequence = Math.max(this.#sequence, sequence);
    }
  }

  /** Removes an acknowledged record. */
  async plantLoss(): Promise<void> {
    await this.#open();
    const kept = this.#state;
    await this.#append('planted', 'kept');
    await this.#append('planted', 'kept');
    const through = this.#sequence;
    await this.#store!.commit([{ kind: 'trim', log: 'kept', throughSequence: through }]);
    if (kept.size > this.#state.size) throw new Error('the loss was noticed too early');
    await this.#reopen('planted');
  }

  async close(): Promise<void> {
    await this.#store?.close();
  }
}

function newRow(): StoreRow {
  return { cases: 0, fired: 0, full: 0, refused: 0, failed: 0, warned: 0 };
}

/** A store without a database has no catalogue, so findings about keys and blobs do not apply. */
function isOfDatabase(what: string): boolean {
  return /belongs to no|does not exist|unknown|not named/.test(what);
}

function placesOf(log: string, state: State): { place: string; sequence: number }[] {
  return [...state.keys()]
    .filter((place) => place.startsWith(`${log} `))
    .map((place) => ({ place, sequence: Number(place.split(' ')[1]) }));
}

function applied(state: State, operations: readonly StoreOperation[]): State {
  const after = new Map(state);
  for (const operation of operations) {
    if (operation.kind === 'append') {
      after.set(`${operation.log} ${operation.sequence}`, operation.record[0]!);
    } else if (operation.kind === 'put') {
      after.set(operation.key.join('/'), operation.value[0]!);
    } else if (operation.kind === 'trim' || operation.kind === 'dropLog') {
      const through = operation.kind === 'trim' ? operation.throughSequence : Infinity;
      for (const { place, sequence } of placesOf(operation.log, after)) {
        if (sequence <= through) after.delete(place);
      }
    }
  }
  return after;
}

function stateOf(store: DiskStore): State {
  const state = new Map<string, number>();
  for (const { key, value } of store.list([])) state.set(key.join('/'), value[0]!);
  for (const { sequence, record } of store.readLog('kept', 0)) {
    if (record.some((byte) => byte !== sequence % 251)) throw new Error(`record ${sequence}`);
    state.set(`kept ${sequence}`, record[0]!);
  }
  return state;
}

/** Ignores the logs of single rounds, which are dropped at their ends unless that failed. */
function isSame(found: State, wanted: State): boolean {
  const places = [...wanted].filter(([place]) => !place.startsWith('log-'));
  return places.length === found.size && places.every(([place, byte]) => found.get(place) === byte);
}

async function runPlan(
  rounds: StoreRounds,
  disk: FaultyDisk,
  plan: StorePlan,
): Promise<Record<string, StoreRow>> {
  const rows: Record<string, StoreRow> = {};
  const rowOf = (name: string) => {
    rows[name] ??= newRow();
    return rows[name];
  };
  const none = () => disk.arm({ calls: [], fault: 'eio', nth: 1 });
  const random = createRandom(plan.seed);
  await rounds.run('the first round', newRow(), none);
  await rounds.run('without a fault', newRow(), none);
  for (const { call, fault, nth } of casesOf(plan, disk.counts, random)) {
    const arm = () => disk.arm({ calls: [call], fault, nth });
    await rounds.run(`${call} ${fault} at ${nth}`, rowOf(`${call} ${fault}`), arm);
  }
  for (let i = 0; i < plan.randomRounds; i++) {
    const seed = plan.seed + i;
    const arm = () => disk.armRandom({ calls: WRITES, share: 0.2, seed });
    await rounds.run(`random short writes, seed ${seed}`, rowOf('random short writes'), arm);
  }
  await rounds.runNew('new without a fault', newRow(), none);
  for (const { call, fault, nth } of casesOf(plan, disk.counts, random)) {
    const arm = () => disk.arm({ calls: [call], fault, nth });
    await rounds.runNew(`new: ${call} ${fault} at ${nth}`, rowOf(`new: ${call} ${fault}`), arm);
  }
  return rows;
}

function* casesOf(
  { calls, faults, every }: StorePlan,
  counts: Readonly<Record<Call, number>>,
  random: () => number,
): Iterable<{ call: Call; fault: Fault; nth: number }> {
  for (const call of calls) {
    for (const fault of faults.filter((name) => isPossible(call, name))) {
      for (let at = 1; at <= counts[call]; at += every) {
        yield { call, fault, nth: Math.min(at + Math.floor(random() * every), counts[call]) };
      }
    }
  }
}

const [folder, controlPath, planText] = process.argv.slice(2);
const plan = JSON.parse(planText!) as StorePlan;
for (const name of plan.calls) if (!CALLS.includes(name)) throw new Error(`no call ${name}`);
for (const name of plan.faults) if (!(name in FAULTS)) throw new Error(`no fault ${name}`);
mkdirSync(folder!, { recursive: true });
const disk = new FaultyDisk('', folder!, controlPath!);
const rounds = new StoreRounds(folder!, disk);
const rows = await runPlan(rounds, disk, plan);
if (plan.isLossPlanted === true) await rounds.plantLoss();
await rounds.close();
disk.close();
const report: StoreReport = { rows, violations: rounds.violations };
process.stdout.write(`${JSON.stringify(report)}\n`);
