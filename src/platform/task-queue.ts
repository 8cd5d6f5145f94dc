// The order in which waiting tasks are given to threads: urgent ones first, in the order of their arrival, and
// from time to time another one, which would otherwise wait as long as there are urgent ones.

import { queueOptionsSymbol } from 'piscina';

/** Urgent tasks in a row while others wait. */
const URGENT_RUN_MAX = 16;

/** As piscina gives tasks to a queue. */
interface QueuedTask {
  readonly [queueOptionsSymbol]: object | null;
}

/** What the pool attaches to the message of an urgent task; not sent to the thread. */
export const URGENT = { [queueOptionsSymbol]: { isUrgent: true } } as const;

export class TaskQueue {
  /** Sets keep the order of arrival, and remove in constant time. */
  readonly #urgent = new Set<QueuedTask>();
  readonly #others = new Set<QueuedTask>();
  #urgentRun = 0;

  get size(): number {
    return this.#urgent.size + this.#others.size;
  }

  push(task: QueuedTask): void {
    (task[queueOptionsSymbol] === null ? this.#others : this.#urgent).add(task);
  }

  shift(): QueuedTask | null {
    const isOthersTurn = this.#urgent.size === 0 || this.#urgentRun >= URGENT_RUN_MAX;
    const isUrgent = this.#others.size === 0 || !isOthersTurn;
    const [task = null] = isUrgent ? this.#urgent : this.#others;
    this.#urgentRun = isUrgent ? this.#urgentRun + 1 : 0;
    if (task !== null) this.remove(task);
    return task;
  }

  remove(task: QueuedTask): void {
    this.#urgent.delete(task);
    this.#others.delete(task);
  }
}
