// Compiles an npm package in packages/ to its dist folder: the modules reachable from its entry points, with
// declarations. Modules from src/common are compiled with it and keep their path relative to the package's own. Does
// nothing if no input has changed since the last build.
//
//   node scripts/building/package.mjs NAME

import { spawnSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildIfChanged } from './inputs.mjs';
import { PRODUCTS, ROOT } from './products.mjs';

const name = process.argv[2];
const folder = `packages/${name}`;

await buildIfChanged(name, () => {
  rmSync(join(ROOT, PRODUCTS[name].output), { recursive: true, force: true });
  const compiler = 'node_modules/typescript/bin/tsc';
  const { status } = spawnSync(process.execPath, [compiler, '-p', folder], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
  copyFileSync(join(ROOT, 'LICENSE'), join(ROOT, folder, 'LICENSE'));
});
