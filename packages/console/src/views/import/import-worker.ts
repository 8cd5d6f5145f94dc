// The worker that reads files: one call at a time, answered by a message.

import { ReadError } from '../../../../../src/readers/read-error.js';
import { createImportReader, type EncodedBatch, type ImportReader } from './import-reader.js';

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
    self.postMessage({ value } satisfies ReaderReply, { transfer: transferred(value) });
  } catch (error) {
    const problem = problemOf(error);
    self.postMessage({ problem } satisfies ReaderReply);
  }
};

/** Without the advice on options that only the command line has. */
function problemOf(error: unknown): string {
  if (!(error instanceof ReadError)) return error instanceof Error ? error.message : String(error);
  return error.isUsage
    ? `${error.problem}; \`sagitta import\` has an option for it`
    : error.problem;
}

/** The bytes of a batch are handed over, not copied. */
function transferred(value: unknown): Transferable[] {
  const bytes = (value as Partial<EncodedBatch> | undefined)?.bytes;
  return bytes instanceof Uint8Array ? [bytes.buffer] : [];
}
