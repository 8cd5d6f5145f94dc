// What the kernels for GPUs need, as a Markdown table: instructions, registers, spilled bytes and static
// shared memory of each. `node scripts/build-kernels.mjs --report 90a` prints it.

import { spawnSync } from 'node:child_process';

/**
 * The lines of the table.
 *
 * @param {ReturnType<typeof import('./cubin.mjs').figuresOfKernels>} found
 * @param {string[]} architectures those of interest, such as 90a
 */
export function linesOfReport(found, architectures) {
  const names = demangled(found.map(({ symbol }) => symbol));
  const rows = found.map((kernel, i) => {
    const { arch, instructions, registers, spilledBytes, sharedBytes } = kernel;
    return { arch, cells: [names[i], arch, instructions, registers, spilledBytes, sharedBytes] };
  });
  return [
    '| kernel | architecture | instructions | registers | spilled bytes | shared bytes |',
    '| --- | --- | --: | --: | --: | --: |',
    ...architectures.flatMap((wanted) =>
      rows
        .filter(({ arch }) => arch === wanted)
        .map(({ cells }) => `| ${cells.join(' | ')} |`)
        .sort(),
    ),
  ];
}

/** Names without namespaces and parameters, such as scan_mma<8>; symbols where c++filt is missing. */
function demangled(symbols) {
  const { status, stdout } = spawnSync('c++filt', { input: symbols.join('\n'), encoding: 'utf8' });
  if (status !== 0) return symbols;
  return stdout
    .trim()
    .split('\n')
    .map((name) =>
      name
        .replaceAll(/\(anonymous namespace\)::|sagitta::cuda::|^void /g, '')
        .replaceAll(/\((?:int|unsigned int)\)/g, '')
        .replace(/\(.*/, ''),
    );
}
