// Prints results on stdout: text for people or, with --json, JSON for programs.

import type { Command } from 'commander';

export interface PrintOptions {
  readonly json?: boolean;
}

export function addJsonOption(command: Command): Command {
  return command.option('--json', 'print the result as JSON');
}

/** Prints the value as JSON with --json, otherwise the text. */
export function print(value: unknown, { json }: PrintOptions, textOf: () => string): void {
  write(json === true ? JSON.stringify(value, null, 2) : textOf());
}

export function write(text: string): void {
  process.stdout.write(`${text}\n`);
}
