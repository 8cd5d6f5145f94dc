// Every bench in turn, each in a process of its own with the machine to itself.
//
//   npm run bench                            smoke parameters: half a minute, no claim
//   npm run bench -- --full                  the parameters of docs/performance.md: half an hour
//   npm run bench -- --full engine rest      some of them
//   npm run bench -- --full --out FOLDER     also writes FOLDER/<name>.md
//   npm run bench -- --engine NAME engine    an engine by name, for benches that take one
//   npm run bench -- --full cuda             the kernels for GPUs; --build compiles what that needs
//
// A bench has options of its own beside these; `node dist/bench/engine.js` takes them.

import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ROOT } from './engine/machine.js';

const NAMES = ['service', 'filter', 'engine', 'rest', 'batches', 'cuda'] as const;
/** Those of them that take --engine. */
const WITH_ENGINE: readonly string[] = ['engine'];

const { values, positionals } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    out: { type: 'string' },
    engine: { type: 'string' },
    build: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const unknown = positionals.find((name) => !NAMES.some((known) => known === name));
if (unknown !== undefined) {
  console.error(`There is no bench ${unknown}; expected ${NAMES.join(', ')}.`);
  process.exit(2);
}
if (values.engine !== undefined && !positionals.every((name) => WITH_ENGINE.includes(name))) {
  console.error(`--engine is for ${WITH_ENGINE.join(', ')}; found ${positionals.join(', ')}.`);
  process.exit(2);
}
const chosen = positionals.length > 0 ? positionals : benchesOf(values.engine);
// Compiling for GPUs takes minutes, so it is for whoever asks for that bench by its name.
if (values.build && positionals.includes('cuda')) {
  const script = join(ROOT, 'scripts', 'build-kernels.mjs');
  spawnSync(process.execPath, [script, 'cuda', 'cuda-bench', '--if-possible'], {
    stdio: 'inherit',
  });
}
if (values.out !== undefined) mkdirSync(values.out, { recursive: true });
for (const name of NAMES) {
  if (!chosen.includes(name)) continue;
  console.log(`── ${name}`);
  const script = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
  const out = values.out === undefined ? [] : ['--out', join(values.out, `${name}.md`)];
  const engine =
    values.engine === undefined || !WITH_ENGINE.includes(name) ? [] : ['--engine', values.engine];
  const { status } = spawnSync(
    process.execPath,
    [script, ...(values.full ? ['--full'] : []), ...engine, ...out],
    { stdio: 'inherit' },
  );
  if (status !== 0) process.exit(status ?? 1);
}

/** Of one engine: those that take its name, and what there is for it alone. */
function benchesOf(engine: string | undefined): readonly string[] {
  if (engine === undefined) return NAMES;
  return engine === 'cuda' ? [...WITH_ENGINE, 'cuda'] : WITH_ENGINE;
}
