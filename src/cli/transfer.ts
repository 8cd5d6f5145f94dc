// What commands that write answers into files share: the options of the file, progress by what has
// arrived, and the sentence at the end.

import { statSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { formatBytes } from './data-directory.js';
import { createProgress, formatSeconds, type Progress } from './progress.js';
import type { WriteFormatName } from './writers/formats.js';
import { checkFree, openOutput, STDOUT, writeAll } from './writers/output.js';

export interface FileOptions<Format extends WriteFormatName> {
  readonly output?: string;
  readonly format?: Format;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function addFileOptions(command: Command, formats: readonly WriteFormatName[]): Command {
  return command
    .option('-o, --output <file>', 'where to; stdout unless told otherwise')
    .addOption(
      new Option('--format <name>', 'in place of what the name of the file says').choices(formats),
    )
    .option('--force', 'overwrite the file when it is there')
    .option('--json', 'print the result as JSON, and no progress');
}

/** Progress on stderr, but not into the answer on a terminal, nor where JSON was asked for. */
export function progressOf(
  what: string,
  { output, json }: FileOptions<WriteFormatName>,
): Progress | undefined {
  const isMixed = isStdout(output) && process.stdout.isTTY === true;
  return json || isMixed ? undefined : createProgress(what);
}

export function isStdout(path: string | undefined): boolean {
  return path === undefined || path === STDOUT;
}

/** Passes on what arrives. @param rowCount of what has arrived, where that is known. */
export async function* counted(
  body: AsyncIterable<Uint8Array>,
  onBytes: (byteCount: number) => void,
): AsyncGenerator<Uint8Array> {
  let byteCount = 0;
  for await (const chunk of body) {
    byteCount += chunk.length;
    onBytes(byteCount);
    yield chunk;
  }
}

/** Before anything is asked for. Throws CliError when the file is there and may stay. */
export function checkOutput({ output, force }: FileOptions<WriteFormatName>): void {
  if (!isStdout(output)) checkFree(output!, force === true);
}

/** Writes all of it under the name, or nothing. */
export async function writeFile(
  chunks: AsyncIterable<Uint8Array>,
  options: FileOptions<WriteFormatName>,
): Promise<void> {
  await writeAll(await openOutput(options.output, options.force === true), chunks);
}

/** The result on stdout, or on stderr where stdout has the answer itself. */
export function printResult(
  what: string,
  facts: Readonly<Record<string, unknown>>,
  options: FileOptions<WriteFormatName>,
  startMs: number,
): void {
  const seconds = (performance.now() - startMs) / 1000;
  if (options.json) {
    const target = isStdout(options.output) ? process.stderr : process.stdout;
    target.write(`${JSON.stringify({ ...facts, seconds: Number(seconds.toFixed(3)) })}\n`);
    return;
  }
  if (isStdout(options.output)) return;
  const size = formatBytes(statSync(options.output!).size);
  process.stdout.write(`${what} into ${options.output} (${size}) in ${formatSeconds(seconds)}\n`);
}
