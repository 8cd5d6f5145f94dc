// node dist/test/cluster/simulation/find-mutations.js [--seeds 300] [--only WORD]
//
// Tries every mutation with seeds from 1 on until a simulation fails, and prints a table for README.md. Exits with 1 when
// a mutation is not found.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MUTATIONS } from './mutations.js';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '300' },
    only: { type: 'string', default: '' },
  },
});
const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));

for (const [i, { name }] of MUTATIONS.entries()) {
  if (!name.includes(values.only)) continue;
  const options = ['--seed', '1', '--seeds', values.seeds, '--threads', '0', '--until-failure'];
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [
      '--import',
      new URL('mutation-loader.js', import.meta.url).href,
      pathOf('main.js'),
      ...options,
    ],
    { env: { ...process.env, SAGITTA_MUTATION: `${i}` }, encoding: 'utf8', maxBuffer: 1e9 },
  );
  const [, seed, failure = ''] = /^seed (\d+): (.*)$/m.exec(stdout) ?? [];
  const isTried = stdout.includes(' virtual hours ');
  const result = seed ?? (isTried ? 'not found' : `broken: ${stderr.slice(-500)}`);
  console.log(`| ${name} | ${result} | ${failure.slice(0, 150)} |`);
  if (seed === undefined) process.exitCode = 1;
}
