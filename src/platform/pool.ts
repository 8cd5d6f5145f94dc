// The worker pool: filters, large bodies and CPU engines run here, off the event loop. A task is a
// named pure function; `worker.ts` lists the tasks that a worker knows. The built-in model has a pool of its own.

import { availableParallelism } from 'node:os';
import type { Piscina } from 'piscina';
import {
  type ErrorMessage,
  fromErrorMessage,
  overloadedError,
  toErrorMessage,
} from '../common/errors.js';
import { DEFAULT_LIMITS } from '../common/limits.js';
import { programFile } from '../common/package-files.js';
import { whenAborted } from '../common/when-aborted.js';
import { piscinaPackage, queueOptionsOf, type TaskPriority, TaskQueue } from './task-queue.js';

/** Input and output cross threads by structured clone: plain data, typed arrays, shared buffers. */
export interface Task<Input, Output> {
  /** Unique, of the form `<folder>.<verb>`. */
  readonly name: string;
  run(input: Input): Output;
  /** Tasks with a priority run before those without one. */
  readonly priority?: TaskPriority;
  /** Returns the buffers of the output to transfer to the caller; all others are copied or shared. */
  transfer?(output: Output): ArrayBuffer[];
}

export interface WorkerPool {
  /** The number of tasks that run at once. */
  readonly threadCount: number;
  /**
   * Runs the task on a worker. Rejects with the SagittaError that the task threw. With `mayBeRefused`, which is set for
   * tasks started by a request, rejects with `overloaded` at once if the queue is full. Tasks that are bounded
   * elsewhere, or must not fail half-way, are always queued.
   */
  run<Input, Output>(
    task: Task<Input, Output>,
    input: Input,
    options?: {
      signal?: AbortSignal;
      mayBeRefused?: boolean;
      /** Buffers of the input that are transferred to the worker and thus detached here. */
      transfer?: readonly ArrayBuffer[];
    },
  ): Promise<Output>;
  close(): Promise<void>;
}

/** A pool with a visible queue. */
export interface ThreadPool extends WorkerPool {
  /** The number of tasks that wait for a thread. */
  readonly waitingCount: number;
}

interface TaskMessage {
  readonly task: string;
  readonly input: unknown;
}

type TaskReply =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly error: ErrorMessage };

/**
 * Tasks leave little but garbage, which a larger young generation only accumulates. Parsing is as fast with this size
 * as with the default of 48 MB.
 */
const YOUNG_GENERATION_MB = 12;

/**
 * Input up to this size is parsed on the event loop. Parsing takes 1 to 3 µs per kilobyte, and a task in the pool
 * another 20 to 60 µs, so parsing longer input would block the event loop for longer than handing it over.
 */
export const INLINE_BYTES_MAX = 64 * 1024;

/** A task that no worker knows. Any reply to it shows that the worker has loaded its module. */
const LOAD_TASK = 'pool.load';

/**
 * A pool of worker threads, whose module has `createTaskHandler(...)`, or a promise of it, as its default export. The
 * threads start with the first task, so that a service with little to do starts in half the time.
 */
export function createThreadPool(
  options: {
    /** The module of the threads, as for `programFile`. */
    module?: string;
    threadCount?: number;
    /** Number of tasks that may wait for a thread before others are refused. */
    waitingMax?: number;
  } = {},
): ThreadPool {
  const threadCount = options.threadCount ?? availableParallelism();
  const waitingMax = options.waitingMax ?? DEFAULT_LIMITS.queuedTasksMax;
  const module = options.module ?? 'worker.js';
  let threads: Threads | null = null;
  return {
    threadCount,
    get waitingCount() {
      return threads?.piscina.queueSize ?? 0;
    },
    async run<Input, Output>(
      task: Task<Input, Output>,
      input: Input,
      runOptions: {
        signal?: AbortSignal;
        mayBeRefused?: boolean;
        transfer?: readonly ArrayBuffer[];
      } = {},
    ): Promise<Output> {
      threads ??= startThreads(module, threadCount);
      const { piscina } = threads;
      if (runOptions.mayBeRefused === true && piscina.queueSize >= waitingMax) {
        throw overloadedError(
          `Too many tasks are waiting for a worker thread (limit ${waitingMax}).`,
        );
      }
      const message: TaskMessage = { task: task.name, input, ...queueOptionsOf(task.priority) };
      const own = ownSignal(runOptions.signal);
      try {
        const reply = (await piscina.run(message, {
          signal: own.signal,
          ...(runOptions.transfer && { transferList: [...runOptions.transfer] }),
        })) as TaskReply;
        if (!reply.ok) throw fromErrorMessage(reply.error);
        return reply.output as Output;
      } finally {
        own.release();
      }
    },
    async close() {
      await threads?.loaded;
      await threads?.piscina.destroy();
    },
  };
}

interface Threads {
  readonly piscina: Piscina;
  /** Settles when every thread has loaded its module: Node 20 aborts the process if one is terminated earlier. */
  readonly loaded: Promise<unknown>;
}

function startThreads(module: string, threadCount: number): Threads {
  const piscina = new (piscinaPackage().Piscina)({
    filename: programFile(module),
    minThreads: threadCount,
    maxThreads: threadCount,
    idleTimeout: Number.POSITIVE_INFINITY,
    // Nothing reads piscina's histograms; ours measure whole batches.
    recordTiming: false,
    taskQueue: new TaskQueue(),
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  const loads = Array.from({ length: threadCount }, () =>
    piscina.run({ task: LOAD_TASK, input: null }),
  );
  return { piscina, loaded: Promise.allSettled(loads) };
}

/**
 * Creates a separate signal for the task. Piscina adds a listener per task, and Node would warn of a leak from the
 * eleventh listener of a signal on.
 */
function ownSignal(signal: AbortSignal | undefined): {
  readonly signal: AbortSignal | null;
  release(): void;
} {
  if (signal === undefined || signal.aborted) return { signal: signal ?? null, release() {} };
  const controller = new AbortController();
  const release = whenAborted(signal, () => controller.abort(signal.reason));
  return { signal: controller.signal, release };
}

/** Runs tasks immediately on the calling thread, for tests and for tools that serve no requests. */
export function createInlinePool(): WorkerPool {
  return {
    threadCount: 1,
    async run(task, input) {
      return task.run(input);
    },
    async close() {},
  };
}

/** The worker's side: dispatches by name and turns an exception into a reply that keeps its code. */
export function createTaskHandler(
  tasks: readonly Task<never, unknown>[],
): (message: TaskMessage) => TaskReply {
  const byName = new Map(tasks.map((task) => [task.name, task]));
  return ({ task: name, input }) => {
    try {
      const task = byName.get(name);
      if (task === undefined) throw new Error(`no task is named ${name}`);
      const output = task.run(input as never);
      const reply: TaskReply = { ok: true, output };
      const buffers = task.transfer?.(output) ?? [];
      return buffers.length === 0 ? reply : moved(reply, buffers);
    } catch (error) {
      return { ok: false, error: toErrorMessage(error) };
    }
  };
}

/** Wraps the reply so that piscina posts it with a transfer list. */
function moved(reply: TaskReply, buffers: ArrayBuffer[]): TaskReply {
  const { move, transferableSymbol, valueSymbol } = piscinaPackage();
  const transferable = { [transferableSymbol]: buffers, [valueSymbol]: reply };
  return move(transferable as unknown as ArrayBuffer) as unknown as TaskReply;
}
