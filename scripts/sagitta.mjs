#!/usr/bin/env -S MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072 node --max-semi-space-size=8
// The `sagitta` command of the npm package and of a checkout. It exists before the first build, since npx keeps
// the link to a command that it did not find.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const program = join(folder, 'dist/app/cli/main.js');
if (existsSync(program)) {
  await createRequire(import.meta.url)(program).runCommand();
} else {
  console.error(
    `sagitta: ${folder} is not built yet; run \`npm ci && npm run build\` there, then try again`,
  );
  process.exitCode = 1;
}
