// Options, progress and summary shared by the commands that write results to a file or stdout
// (export, join, query --file).

import { statSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { createProgress, type Progress } from '../terminal/progress.js';
import { formatBytes, formatSeconds } from '../terminal/units.js';
import type { WriteFormatName } from './formats.js';
import { checkFree, isStdout, openOutput, writeAll } from './output.js';

export interface OutputFileOptions<Format extends WriteFormatName> {
  readonly output?: string;
  readonly format?: Format;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function addOutputFileOptions(
  command: Command,
  formats: readonly WriteFormatName[],
): Command {
  return command
    .option('-o, --output <file>', 'output file (default: stdout)')
    .addOption(
      new Option('--format <name>', 'output format (default: by file extension)').choices(formats),
    )
    .option('--force', 'overwrite an existing file')
    .option('--json', 'print a JSON summary and no progress');
}

/** Progress on stderr; none with --json or when the result itself goes to the terminal. */
export function progressOf(
  what: string,
  { output, json }: OutputFileOptions<WriteFormatName>,
): Progress | undefined {
  const isMixed = isStdout(output) && process.stdout.isTTY === true;
  return json || isMixed ? undefined : createProgress(what);
}

/** Passes the chunks on unchanged; `onBytes` receives the number of bytes so far. */
export async function* countBytes(
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

/** Throws CliError when the file exists and --force is not given; called before the first request. */
export function checkOutput({ output, force }: OutputFileOptions<WriteFormatName>): void {
  if (!isStdout(output)) checkFree(output, force === true);
}

/** Writes the whole file, or nothing if reading the chunks fails. */
export async function writeFile(
  chunks: AsyncIterable<Uint8Array>,
  options: OutputFileOptions<WriteFormatName>,
): Promise<void> {
  await writeAll(await openOutput(options.output, options.force === true), chunks);
}

/** Prints the summary on stdout, or on stderr when stdout receives the result itself. */
export function printResult(
  what: string,
  summary: Readonly<Record<string, unknown>>,
  options: OutputFileOptions<WriteFormatName>,
  startMs: number,
): void {
  const seconds = (performance.now() - startMs) / 1000;
  if (options.json) {
    const target = isStdout(options.output) ? process.stderr : process.stdout;
    target.write(`${JSON.stringify({ ...summary, seconds: Number(seconds.toFixed(3)) })}\n`);
    return;
  }
  if (isStdout(options.output)) return;
  const size = formatBytes(statSync(options.output).size);
  process.stdout.write(
    `Wrote ${what} to ${options.output} (${size}) in ${formatSeconds(seconds)}.\n`,
  );
}
