// Compiles an npm package of packages/ to its folder dist: the modules that its entry points reach, with declarations.
// Modules of src/common are compiled with it, at the same place relative to the package's own. Does nothing when no input
// has changed since the last build.
//
//   node scripts/building/package.mjs NAME

import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildIfChanged } from './inputs.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const name = process.argv[2];
const folder = `packages/${name}`;
const manifest = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
const siblings = Object.keys(manifest.dependencies ?? {})
  .filter((dependency) => dependency.startsWith('@sagitta/'))
  .map((dependency) => dependency.replace('@sagitta', 'packages'));

await buildIfChanged(
  {
    name: manifest.name,
    stamp: join(ROOT, 'dist', `.package-${name}-inputs`),
    inputs: [
      ...[folder, ...siblings].map((each) => `${each}/src`),
      `${folder}/tsconfig.json`,
      'src/common',
      'tsconfig.json',
      'package-lock.json',
      'scripts/building/package.mjs',
    ],
    output: join(ROOT, folder, manifest.exports['.'].default),
  },
  () => {
    rmSync(join(ROOT, folder, 'dist'), { recursive: true, force: true });
    const compiler = 'node_modules/typescript/bin/tsc';
    const { status } = spawnSync(process.execPath, [compiler, '-p', folder], {
      cwd: ROOT,
      stdio: 'inherit',
    });
    if (status !== 0) process.exit(status ?? 1);
    copyFileSync(join(ROOT, 'LICENSE'), join(ROOT, folder, 'LICENSE'));
  },
);
