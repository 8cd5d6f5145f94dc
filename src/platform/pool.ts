// The one worker pool: filters, large bodies and CPU engines run here, off the event loop. A task
// is a named pure function; `worker.ts` says which tasks a worker knows.

import { availableParallelism } from 'node:os';
import { move, Piscina, transferableSymbol, valueSymbol } from 'piscina';
import {
  type ErrorMessage,
  fromErrorMessage,
  SagittaError,
  toErrorMessage,
} from '../common/errors.js';
import { DEFAULT_LIMITS } from '../common/limits.js';

/** Input and output cross threads by structured clone: plain data, typed arrays, shared buffers. */
export interface Task<Input, Output> {
  /** `<folder>.<verb>`, unique. */
  readonly name: string;
  run(input: Input): Output;
  /** Buffers of the output that move to the caller; the rest is copied or shared. */
  transfer?(output: Output): ArrayBuffer[];
}

export interface WorkerPool {
  /** How many tasks run at once. */
  readonly threadCount: number;
  /**
   * Runs the task on a worker. Rejects with the SagittaError that the task threw, code and all; and
   * with `overloaded`, at once, when too many tasks wait and this one `mayBeRefused`: what requests
   * begin. What already has a bound of its own, or must not fail half-way, is never refused.
   */
  run<Input, Output>(
    task: Task<Input, Output>,
    input: Input,
    options?: {
      signal?: AbortSignal;
      mayBeRefused?: boolean;
      /** Buffers of the input that move to the worker; they are then gone from here. */
      transfer?: readonly ArrayBuffer[];
    },
  ): Promise<Output>;
  close(): Promise<void>;
}

/** A pool whose queue can be looked at. */
export interface ThreadPool extends WorkerPool {
  /** Tasks that wait for a thread. */
  readonly waitingCount: number;
}

export interface TaskMessage {
  readonly task: string;
  readonly input: unknown;
}

export type TaskReply =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly error: ErrorMessage };

/**
 * A worker's tasks leave little behind but garbage; a larger nursery would only hold more of it.
 * Parsing is as fast with it as with the default of 48 MB.
 */
const YOUNG_GENERATION_MB = 12;

/** The name of a task that no worker has: its reply says no more than that the worker is there. */
const LOAD_TASK = 'pool.load';

/** A pool of worker threads; `workerUrl` names the module whose default export is `createTaskHandler(...)`. */
export function createThreadPool(options: {
  workerUrl: URL;
  threadCount?: number;
  /** Tasks that may wait for a thread before further ones are refused. */
  waitingMax?: number;
}): ThreadPool {
  const threadCount = options.threadCount ?? availableParallelism();
  const waitingMax = options.waitingMax ?? DEFAULT_LIMITS.queuedTasksMax;
  const piscina = new Piscina({
    filename: options.workerUrl.href,
    minThreads: threadCount,
    maxThreads: threadCount,
    idleTimeout: Number.POSITIVE_INFINITY,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  // One empty task a worker, answered when it has loaded its module: Node 20 aborts the process when
  // a worker is ended in the middle of that.
  const loaded = Promise.allSettled(
    Array.from({ length: threadCount }, () => piscina.run({ task: LOAD_TASK, input: null })),
  );
  return {
    threadCount,
    get waitingCount() {
      return piscina.queueSize;
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
      if (runOptions.mayBeRefused === true && piscina.queueSize >= waitingMax) {
        throw overloaded(piscina.queueSize);
      }
      const message: TaskMessage = { task: task.name, input };
      const reply = (await piscina.run(message, {
        signal: runOptions.signal ?? null,
        transferList: [...(runOptions.transfer ?? [])],
      })) as TaskReply;
      if (!reply.ok) throw fromErrorMessage(reply.error);
      return reply.output as Output;
    },
    async close() {
      await loaded;
      await piscina.destroy();
    },
  };
}

function overloaded(waitingCount: number): SagittaError {
  return new SagittaError(
    'overloaded',
    `${waitingCount} tasks wait for a thread, which is the most that may.`,
    { retryAfterSeconds: 1 },
  );
}

/** Runs every task at once on the calling thread: for tests and for tools that serve nobody. */
export function createInlinePool(): WorkerPool {
  return {
    threadCount: 1,
    async run(task, input) {
      return task.run(input);
    },
    async close() {},
  };
}

/** The worker's side: dispatches by name and turns a throw into a reply that keeps its code. */
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

/** What piscina posts with a transfer list. */
function moved(reply: TaskReply, buffers: ArrayBuffer[]): TaskReply {
  const transferable = { [transferableSymbol]: buffers, [valueSymbol]: reply };
  return move(transferable as unknown as ArrayBuffer) as unknown as TaskReply;
}
