// The data directory that a command works on, as an option names it, and numbers as people read them.

import type { Command } from 'commander';

export interface DataDirectoryOptions {
  readonly dataDir?: string;
}

export function addDataDirectoryOption(command: Command): Command {
  return command.option(
    '--data-dir <path>',
    'the data directory; else SAGITTA_DATA_DIR, else ./data',
  );
}

export function dataDirectoryOf({ dataDir }: DataDirectoryOptions): string {
  return dataDir ?? process.env.SAGITTA_DATA_DIR ?? './data';
}

const BYTE_UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'];

/** `1.2 GB`, in powers of a thousand. */
export function formatBytes(byteCount: number): string {
  let count = byteCount;
  let unit = 0;
  while (count >= 1000 && unit < BYTE_UNITS.length - 1) {
    count /= 1000;
    unit++;
  }
  return `${unit === 0 ? count : count.toFixed(1)} ${BYTE_UNITS[unit]}`;
}
