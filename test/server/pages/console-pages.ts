// Services with the console.

import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

export const SCRIPT = 'export const greeting = "hello";\n'.repeat(20);
export const PAGE = '<!doctype html><title>Console</title>';
/** The Accept of a browser that opens a page. */
export const BROWSER = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
};

const FILES: Readonly<Record<string, string | Buffer>> = {
  'index.html': PAGE,
  'index.html.br': brotliCompressSync(PAGE),
  'index.html.gz': gzipSync(PAGE),
  'favicon.svg': '<svg/>',
  'assets/main-Ab_3x-9Z.js': SCRIPT,
  'assets/main-Ab_3x-9Z.js.br': brotliCompressSync(SCRIPT),
  'assets/main-Ab_3x-9Z.js.gz': gzipSync(SCRIPT),
  'assets/main-DEADBEEF.css': 'body {}',
  'assets/inter-01234567.woff2': Buffer.from([1, 2, 3]),
  'assets/map-01234567.wasm': Buffer.from([0, 0x61, 0x73, 0x6d]),
  'assets/data-01234567.bin': Buffer.from([9]),
};

export async function writeConsole(files = FILES): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sagitta-console-'));
  for (const [name, bytes] of Object.entries(files)) {
    await mkdir(join(folder, dirname(name)), { recursive: true });
    await writeFile(join(folder, name), bytes);
  }
  return folder;
}
