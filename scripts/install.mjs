// Runs when npm installs the package or a checkout. Builds the kernels with the local compiler unless the package
// contains kernels that load on this machine. Never fails: without kernels the server still works, only many times
// slower. Where npm skips install scripts, src/platform/native-addon.ts finds the same kernels.

import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const prebuilt = `../build/prebuilt/${process.platform}-${process.arch}/sagitta.node`;

// The addon that maps files depends on the version of Node, so it is always built.
const names = loads(prebuilt) ? ['files'] : [];
const words = ['scripts/build-kernels.mjs', ...names, '--if-possible'];
spawnSync(process.execPath, words, { cwd: root, stdio: 'inherit' });
// The published package has no code cache, since a cache depends on the version of Node.
spawnSync(process.execPath, ['scripts/building/save-code-cache.mjs'], {
  cwd: root,
  stdio: 'inherit',
});

/** Whether the addon loads here. It does not on another C library, such as musl. */
function loads(path) {
  try {
    createRequire(import.meta.url)(path);
    return true;
  } catch {
    return false;
  }
}
