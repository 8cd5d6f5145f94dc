// Checks the sizes of the downloads without the parts that take minutes to compile: the offline archive without GPU
// kernels, and the npm package without kernels for other platforms.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_BYTES_MAX, PACKED, requireBytes } from '../packages/size-limits.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const options = { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] };

const packed = execFileSync(
  'npm',
  ['pack', '--dry-run', '--json', '--ignore-scripts', ...PACKED],
  options,
);
for (const { name, size, filename } of Object.values(JSON.parse(packed))) {
  requireBytes(filename, size, PACKAGE_BYTES_MAX[name]);
}
const folder = mkdtempSync(join(tmpdir(), 'sagitta-sizes-'));
try {
  const words = ['scripts/bundle/bundle.mjs', '--out', folder];
  process.stdout.write(execFileSync(process.execPath, words, options));
} finally {
  rmSync(folder, { recursive: true });
}
