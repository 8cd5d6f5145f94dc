// The only source of time and order in a simulation. Everything that happens is an event of one process at a virtual
// time; after an event, all promises that it has settled run before the next one begins. Events of a dead process are
// dropped, and those of a halted one wait until it goes on.

import { type Dice, hashOf } from './dice.js';

/** A process of the simulated cluster: a node between a start and its end, the log servers, or the clients. */
export class SimProcess {
  readonly name: string;
  readonly dice: Dice;
  readonly startedAtMs: number;
  readonly machine: Machine;
  isDead = false;
  isHalted = false;
  /** Events that became due while the process was halted. */
  readonly deferred: SimEvent[] = [];

  constructor(name: string, machine: Machine, dice: Dice, startedAtMs: number) {
    this.name = name;
    this.machine = machine;
    this.dice = dice;
    this.startedAtMs = startedAtMs;
  }
}

/** What the processes on one machine have in common. */
export interface Machine {
  readonly name: string;
  /** How far its wall clock is ahead. */
  wallOffsetMs: number;
}

export interface SimEvent {
  readonly atMs: number;
  readonly order: number;
  readonly process: SimProcess;
  readonly label: string;
  readonly run: () => void;
  isCancelled: boolean;
}

/** The time that reading a clock takes, so that a clock never shows the same time twice and loops that wait for it end. */
const CLOCK_MS = 0.0001;
const realSetImmediate = globalThis.setImmediate;

export class Scheduler {
  readonly world: SimProcess;
  readonly dice: Dice;
  /** Called with an error that nothing has handled. */
  onUnhandled: (error: unknown) => void = () => {};
  current: SimProcess;
  #nowMs = 0;
  #order = 0;
  #eventCount = 0;
  #digest = hashOf('');
  readonly #queue: SimEvent[] = [];

  constructor(dice: Dice) {
    this.dice = dice;
    const machine = { name: 'world', wallOffsetMs: 0 };
    this.world = new SimProcess('world', machine, dice.for('world'), 0);
    this.current = this.world;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  get eventCount(): number {
    return this.#eventCount;
  }

  /** A digest of everything that has happened, in order. */
  get digest(): string {
    return this.#digest.toString(16).padStart(8, '0');
  }

  /** The monotonic clock of the current process. */
  readClock(): number {
    this.#nowMs += CLOCK_MS;
    return this.#nowMs - this.current.startedAtMs;
  }

  /** Adds what an event has led to to the digest. */
  note(text: string): void {
    this.#digest = hashOf(text, this.#digest);
  }

  after(delayMs: number, process: SimProcess, label: string, run: () => void): SimEvent {
    const event: SimEvent = {
      atMs: this.#nowMs + delayMs,
      order: this.#order++,
      process,
      label,
      run,
      isCancelled: false,
    };
    this.#push(event);
    return event;
  }

  /** Resolves in the current process after a delay. */
  async sleep(delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => this.after(delayMs, this.current, 'sleep', resolve));
  }

  halt(process: SimProcess): void {
    process.isHalted = true;
  }

  resume(process: SimProcess): void {
    process.isHalted = false;
    for (const { label, run, ...event } of process.deferred.splice(0)) {
      if (!event.isCancelled) this.after(0, process, label, run);
    }
  }

  /** Runs events until the condition holds, or until nothing is left to happen before `msMax`. */
  async runUntil(isDone: () => boolean, msMax: number): Promise<void> {
    await settle();
    while (!isDone()) {
      const event = this.#pop();
      if (event === undefined || event.atMs > msMax) return;
      if (event.isCancelled || event.process.isDead) continue;
      this.#nowMs = Math.max(this.#nowMs, event.atMs);
      if (event.process.isHalted) {
        event.process.deferred.push(event);
        continue;
      }
      this.#eventCount++;
      this.note(`${event.process.name} ${event.label} ${event.atMs}`);
      this.current = event.process;
      try {
        event.run();
      } catch (error) {
        this.onUnhandled(error);
      }
      await settle();
      this.current = this.world;
    }
  }

  #push(event: SimEvent): void {
    const queue = this.#queue;
    let at = queue.length;
    queue.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, queue[parent]!)) break;
      queue[at] = queue[parent]!;
      at = parent;
    }
    queue[at] = event;
  }

  #pop(): SimEvent | undefined {
    const queue = this.#queue;
    const first = queue[0];
    const last = queue.pop();
    if (first === undefined || last === undefined || queue.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= queue.length) break;
      if (child + 1 < queue.length && isBefore(queue[child + 1]!, queue[child]!)) child++;
      if (!isBefore(queue[child]!, last)) break;
      queue[at] = queue[child]!;
      at = child;
    }
    queue[at] = last;
    return first;
  }
}

function isBefore(a: SimEvent, b: SimEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Resolves when all promises that can settle have settled. */
function settle(): Promise<void> {
  return new Promise((resolve) => realSetImmediate(resolve));
}
