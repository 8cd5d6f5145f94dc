// A proxy for the reader in the worker. Calls are answered in order.

import { ReadError } from '../../../../../src/readers/read-error.js';
import type { ImportReader } from './import-reader.js';
import type { ReaderCall, ReaderReply } from './import-worker.js';

export interface WorkerReader extends ImportReader {
  /** Terminates the worker. A pending call never resolves. */
  close(): void;
}

export function openWorkerReader(): WorkerReader {
  const worker = new Worker(new URL('./import-worker.ts', import.meta.url), { type: 'module' });
  const waiting: { resolve(value: unknown): void; reject(error: Error): void }[] = [];
  worker.onmessage = ({ data }: MessageEvent<ReaderReply>) => {
    const call = waiting.shift()!;
    if ('problem' in data) call.reject(new ReadError(data.problem));
    else call.resolve(data.value);
  };
  worker.onerror = ({ message }) => {
    for (const { reject } of waiting.splice(0)) reject(new ReadError(message));
  };
  const call = <Value>(method: ReaderCall['method'], ...args: readonly unknown[]) =>
    new Promise<Value>((resolve, reject) => {
      waiting.push({ resolve: resolve as (value: unknown) => void, reject });
      worker.postMessage({ method, args } satisfies ReaderCall);
    });
  return {
    open: (file) => call('open', file),
    start: (options) => call('start', options),
    next: () => call('next'),
    rest: (from, rejected) => call('rest', from, rejected),
    close: () => worker.terminate(),
  };
}
