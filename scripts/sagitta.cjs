#!/usr/bin/env -S MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072 node --max-semi-space-size=8
// The `sagitta` command of the npm package and of a checkout. It exists before the first build because npx remembers a
// command that it failed to find. It is a script because Node starts scripts 20 ms sooner than modules.

const { existsSync } = require('node:fs');
const { dirname, join } = require('node:path');

const folder = dirname(__dirname);
const program = join(folder, 'dist/app/cli/main.js');
if (existsSync(program)) {
  require(program).runCommand();
} else {
  console.error(
    `sagitta: ${folder} is not built yet; run \`npm ci && npm run build\` there, then try again`,
  );
  process.exitCode = 1;
}
