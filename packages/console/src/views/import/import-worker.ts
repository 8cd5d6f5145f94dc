// The worker that reads files. Each call is a message, answered by another message.

import { ReadError } from '../../../../../src/readers/read-error.js';
import { createImportReader, type EncodedImportBatch, type ImportReader } from './import-reader.js';

/** A call of a method of the reader. */
export interface ReaderCall {
  readonly method: keyof ImportReader;
  readonly args: readonly unknown[];
}

export type ReaderReply = { readonly value: unknown } | { readonly problem: string };

const reader = createImportReader();

self.onmessage = async ({ data: { method, args } }: MessageEvent<ReaderCall>) => {
  try {
    const run = reader[method] as (...args: readonly unknown[]) => Promise<unknown>;
    const value = await run(...args);
    self.postMessage({ value } satisfies ReaderReply, { transfer: transferablesOf(value) });
  } catch (error) {
    const problem = problemOf(error);
    self.postMessage({ problem } satisfies ReaderReply);
  }
};

/** The error message, without hints about options that only the command line has. */
function problemOf(error: unknown): string {
  if (!(error instanceof ReadError)) return error instanceof Error ? error.message : String(error);
  return error.isUsage
    ? `${error.problem}; \`sagitta import\` has an option for it`
    : error.problem;
}

/** The bytes of a batch are transferred, not copied. */
function transferablesOf(value: unknown): Transferable[] {
  const bytes = (value as Partial<EncodedImportBatch> | undefined)?.bytes;
  return bytes instanceof Uint8Array ? [bytes.buffer] : [];
}
