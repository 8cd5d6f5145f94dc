// The network between machines. Messages take a random time, and may overtake one another. A link can be cut in either
// direction; a message on a cut link is lost, or arrives after the cut, as one that TCP sends again.

import type { Dice } from './dice.js';
import type { Machine, Scheduler, SimProcess } from './scheduler.js';

const LATENCY_MS_MIN = 0.1;
const LATENCY_MS_MAX = 2;
/** Packets are resent at growing intervals, so messages arrive some time after a repair, in any order. */
const RESENT_CHANCE = 0.5;
const RESENT_LATE_MS_MAX = 3_000;
/** How many messages are held up although nothing is broken, in one simulation or another. */
const STRAY_CHANCES = [0, 0.001, 0.01];
/** Longer than a publisher waits for a reply. */
const STRAY_MS_MAX = 9_000;
/** The longest time for which TCP goes on sending in these simulations. */
const RESENT_MS_MAX = 10_000;

interface Message {
  readonly from: Machine;
  readonly to: SimProcess;
  readonly label: string;
  readonly sentAtMs: number;
  readonly deliver: () => void;
}

export class Network {
  readonly #scheduler: Scheduler;
  readonly #dice: Dice;
  readonly #strayChance: number;
  /** `from>to` of the links that are cut. */
  readonly #cuts = new Set<string>();
  /** Additional latency of messages from and to a machine. */
  readonly #slowMs = new Map<string, number>();
  #held: Message[] = [];
  readonly #healListeners = new Set<() => void>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    this.#dice = scheduler.dice.for('network');
    this.#strayChance = this.#dice.pick(STRAY_CHANCES);
  }

  isUp(from: string, to: string): boolean {
    return !this.#cuts.has(`${from}>${to}`);
  }

  cut(from: string, to: string): void {
    this.#cuts.add(`${from}>${to}`);
  }

  /** Repairs all links, and delivers what is sent again. */
  heal(): void {
    this.#cuts.clear();
    this.#slowMs.clear();
    const held = this.#held;
    this.#held = [];
    for (const message of held) {
      if (this.#scheduler.nowMs - message.sentAtMs < RESENT_MS_MAX) {
        this.#schedule(message, this.#dice.fraction() * RESENT_LATE_MS_MAX);
      }
    }
    for (const listener of this.#healListeners) listener();
  }

  /** Calls a function after each repair. */
  onHeal(listener: () => void): void {
    this.#healListeners.add(listener);
  }

  slow(machine: string, ms: number): void {
    this.#slowMs.set(machine, ms);
  }

  /** Calls `deliver` in the process that receives the message, unless it is lost. */
  send(from: Machine, to: SimProcess, label: string, deliver: () => void): void {
    this.#schedule({ from, to, label, deliver, sentAtMs: this.#scheduler.nowMs });
  }

  #schedule(message: Message, lateMs = 0): void {
    const { from, to, label } = message;
    if (!this.isUp(from.name, to.machine.name)) {
      this.#lose(message);
      return;
    }
    const delayMs = this.#latency(from.name, to.machine.name) + lateMs;
    this.#scheduler.after(delayMs, to, label, () => {
      if (this.isUp(from.name, to.machine.name)) message.deliver();
      else this.#lose(message);
    });
  }

  #lose(message: Message): void {
    if (this.#dice.chance(RESENT_CHANCE)) this.#held.push(message);
  }

  #latency(from: string, to: string): number {
    const slowMs = (this.#slowMs.get(from) ?? 0) + (this.#slowMs.get(to) ?? 0);
    const strayMs = this.#dice.chance(this.#strayChance) ? STRAY_MS_MAX : 0;
    const usualMs = this.#dice.between(LATENCY_MS_MIN, LATENCY_MS_MAX);
    return usualMs + this.#dice.fraction() * (slowMs + strayMs);
  }
}
