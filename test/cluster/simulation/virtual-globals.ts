// Replaces the timers, clocks and sources of randomness of this thread by those of a scheduler while a simulation runs.
// Modules that import them by name see the replacements too. Nothing in src knows of this.

import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import timersPromises from 'node:timers/promises';
import { whenAborted } from '../../../src/common/when-aborted.js';
import type { Scheduler, SimEvent, SimProcess } from './scheduler.js';

/** Any date after those of other tests. */
const EPOCH_MS = Date.UTC(2030, 0, 1);
const IMMEDIATE_MS = 0.01;
/** How late timers are: usually hardly, sometimes noticeably. */
const LATE_MS = 0.5;
const VERY_LATE_MS = 20;
const VERY_LATE_CHANCE = 0.005;

/** A handle of `setTimeout` or `setInterval`. */
class VirtualTimer {
  readonly #scheduler: Scheduler;
  readonly #process: SimProcess;
  readonly #delayMs: number;
  readonly #isRepeated: boolean;
  readonly #run: () => void;
  #event: SimEvent;

  constructor(scheduler: Scheduler, run: () => void, delayMs: number, isRepeated: boolean) {
    this.#scheduler = scheduler;
    this.#process = scheduler.current;
    this.#delayMs = delayMs >= 1 ? delayMs : 1;
    this.#isRepeated = isRepeated;
    this.#run = run;
    this.#event = this.#schedule();
  }

  #schedule(): SimEvent {
    const { dice } = this.#process;
    const lateMs = dice.fraction() * (dice.chance(VERY_LATE_CHANCE) ? VERY_LATE_MS : LATE_MS);
    return this.#scheduler.after(this.#delayMs + lateMs, this.#process, 'timer', () => {
      if (this.#isRepeated) this.#event = this.#schedule();
      this.#run();
    });
  }

  refresh(): this {
    this.close();
    this.#event = this.#schedule();
    return this;
  }

  close(): void {
    this.#event.isCancelled = true;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }
}

/** Returns the function that restores what was replaced. */
export function replaceGlobals(scheduler: Scheduler): () => void {
  const restorers: (() => void)[] = [];
  const replace = (target: object, members: Readonly<Record<string, unknown>>) => {
    for (const [name, value] of Object.entries(members)) {
      const before = Object.getOwnPropertyDescriptor(target, name);
      Object.defineProperty(target, name, { value, configurable: true, writable: true });
      restorers.push(() => {
        if (before === undefined) Reflect.deleteProperty(target, name);
        else Object.defineProperty(target, name, before);
      });
    }
  };
  const timerFunctions = timersOf(scheduler);
  replace(globalThis, timerFunctions);
  replace(timers, timerFunctions);
  replace(timersPromises, promisesOf(scheduler));
  replace(globalThis, { Date: dateOf(scheduler) });
  replace(performance, { now: () => scheduler.readClock() });
  replace(Math, { random: () => scheduler.current.dice.fraction() });
  replace(AbortSignal, { timeout: (ms: number) => timeoutOf(scheduler, ms) });
  replace(crypto, {
    randomUUID: () => scheduler.current.dice.uuid(),
    randomBytes: (count: number) => scheduler.current.dice.bytes(count),
  });
  syncBuiltinESMExports();
  return () => {
    for (const restore of restorers.reverse()) restore();
    syncBuiltinESMExports();
  };
}

function timersOf(scheduler: Scheduler) {
  type Run = (...args: unknown[]) => void;
  const clear = (timer: VirtualTimer | undefined) => timer?.close();
  return {
    setTimeout: (run: Run, ms = 1, ...args: unknown[]) =>
      new VirtualTimer(scheduler, () => run(...args), ms, false),
    setInterval: (run: Run, ms = 1, ...args: unknown[]) =>
      new VirtualTimer(scheduler, () => run(...args), ms, true),
    setImmediate: (run: Run, ...args: unknown[]) =>
      scheduler.after(IMMEDIATE_MS, scheduler.current, 'immediate', () => run(...args)),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: (event: SimEvent | undefined) => {
      if (event !== undefined) event.isCancelled = true;
    },
  };
}

function promisesOf(scheduler: Scheduler) {
  return {
    setTimeout: <Value>(ms = 1, value?: Value, { signal }: { signal?: AbortSignal } = {}) =>
      new Promise<Value | undefined>((resolve, reject) => {
        const abort = () => {
          timer.close();
          reject(abortError(signal?.reason));
        };
        if (signal?.aborted) {
          reject(abortError(signal.reason));
          return;
        }
        const ignoreAbort = whenAborted(signal, abort);
        const timer = new VirtualTimer(
          scheduler,
          () => {
            ignoreAbort();
            resolve(value);
          },
          ms,
          false,
        );
      }),
    setImmediate: <Value>(value?: Value) =>
      new Promise<Value | undefined>((resolve) => {
        scheduler.after(IMMEDIATE_MS, scheduler.current, 'immediate', () => resolve(value));
      }),
  };
}

function abortError(cause: unknown): Error {
  const error = new Error('The operation was aborted', { cause });
  return Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' });
}

function timeoutOf(scheduler: Scheduler, ms: number): AbortSignal {
  const controller = new AbortController();
  const end = () => {
    controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
  };
  new VirtualTimer(scheduler, end, ms, false);
  return controller.signal;
}

function dateOf(scheduler: Scheduler): typeof Date {
  const RealDate = Date;
  const now = () => wallClockOf(scheduler);
  return new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  });
}

/** The wall clock of the current process in whole milliseconds. */
export function wallClockOf(scheduler: Scheduler): number {
  const { wallOffsetMs } = scheduler.current.machine;
  return Math.floor(EPOCH_MS + scheduler.nowMs + wallOffsetMs);
}
