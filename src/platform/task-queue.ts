// The order in which waiting tasks run: first those of writers, then searches, each in order of arrival. From time to
// time another task runs, since it would otherwise wait as long as searches arrive.

import type { queueOptionsSymbol } from 'piscina';
import { latePackage } from '../common/late-package.js';

/** Loaded late, since its dependencies would add a twentieth to the time of a start. */
export const piscinaPackage = latePackage<typeof import('piscina')>('piscina');

/**
 * `write` is a short task of a collection's single writer, on which all later writes wait. `search` is a task on which
 * a query waits; it may take a second, so writes must not wait for many of them in a row.
 */
export type TaskPriority = 'write' | 'search';

/** Number of consecutive searches while other tasks wait. */
const SEARCH_RUN_MAX = 16;

/** The part of piscina's queue entries that matters here. */
interface QueuedTask {
  readonly [queueOptionsSymbol]: object | null;
}

/** What the pool attaches to the message of a task with a priority; it is not sent to the thread. */
export function queueOptionsOf(priority: TaskPriority | undefined): object {
  return priority === undefined ? {} : { [piscinaPackage().queueOptionsSymbol]: { priority } };
}

export class TaskQueue {
  /** Sets preserve the order of arrival and remove in constant time. */
  readonly #writes = new Set<QueuedTask>();
  readonly #searches = new Set<QueuedTask>();
  readonly #others = new Set<QueuedTask>();
  #searchRun = 0;

  get size(): number {
    return this.#writes.size + this.#searches.size + this.#others.size;
  }

  push(task: QueuedTask): void {
    this.#queueOf(task).add(task);
  }

  shift(): QueuedTask | null {
    const queue = this.#nextQueue();
    const [task = null] = queue;
    if (task !== null) queue.delete(task);
    return task;
  }

  remove(task: QueuedTask): void {
    this.#queueOf(task).delete(task);
  }

  #queueOf(task: QueuedTask): Set<QueuedTask> {
    const options = task[piscinaPackage().queueOptionsSymbol] as { priority?: TaskPriority } | null;
    if (options?.priority === 'write') return this.#writes;
    return options?.priority === 'search' ? this.#searches : this.#others;
  }

  #nextQueue(): Set<QueuedTask> {
    if (this.#writes.size > 0) return this.#writes;
    const isOthersTurn = this.#searches.size === 0 || this.#searchRun >= SEARCH_RUN_MAX;
    const isSearch = this.#others.size === 0 || !isOthersTurn;
    this.#searchRun = isSearch ? this.#searchRun + 1 : 0;
    return isSearch ? this.#searches : this.#others;
  }
}
