#!/usr/bin/env -S MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072 node --max-semi-space-size=8
// The `sagitta` command of the npm package and of a checkout. It exists before the first build, since npx keeps
// the link to a command that it did not find.

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const program = new URL('../dist/src/cli/main.js', import.meta.url);
if (existsSync(program)) {
  await import(program.href);
} else {
  const folder = dirname(dirname(fileURLToPath(import.meta.url)));
  console.error(
    `sagitta: ${folder} is not built yet; run \`npm ci && npm run build\` there, then try again`,
  );
  process.exitCode = 1;
}
