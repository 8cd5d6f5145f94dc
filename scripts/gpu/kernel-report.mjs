// What the kernels for GPUs need, as a Markdown table: instructions, registers, spilled bytes and static
// shared memory of each. `node scripts/build-kernels.mjs --report` prints it.
//
// Instructions are counted without a disassembler: each takes 16 bytes from compute capability 7.0 on,
// so that the length of a kernel's section says how many there are, without the NOPs that fill it up.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kernelsOfCubin, kernelsOfLog } from './cubin.mjs';

/**
 * The lines of the table, compiled as they are asked for.
 *
 * @param {object} what
 * @param {string[]} what.command nvcc with the flags of kernels
 * @param {string} what.folder where the sources are
 * @param {string[]} what.sources
 * @param {string[]} what.arch architectures, such as 90a
 */
export function* reportKernels({ command, folder, sources, arch }) {
  const scratch = mkdtempSync(join(tmpdir(), 'sagitta-cubins-'));
  try {
    yield '| kernel | architecture | instructions | registers | spilled bytes | shared bytes |';
    yield '| --- | --- | --: | --: | --: | --: |';
    for (const target of arch) {
      for (const source of sources) {
        if (!readFileSync(join(folder, source), 'utf8').includes('__global__')) continue;
        const { cubin, log } = compileForDevice({ command, folder, source, target, scratch });
        yield* rowsOf(cubin, log, target);
      }
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

function compileForDevice({ command, folder, source, target, scratch }) {
  const output = join(scratch, 'kernels.cubin');
  const given = [
    ...[...command.slice(1), '-Xptxas', '-v', '-cubin'],
    ...['-gencode', `arch=compute_${target},code=sm_${target}`, source, '-o', output],
  ];
  const { status, stderr } = spawnSync(command[0], given, { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${source} failed to compile\n${stderr}`);
  return { cubin: readFileSync(output), log: stderr };
}

function rowsOf(cubin, log, target) {
  const figures = kernelsOfLog(log);
  const found = kernelsOfCubin(cubin);
  const names = demangled(found.map(({ symbol }) => symbol));
  const rows = found.map(({ symbol, instructions }, i) => {
    const { registers, spilledBytes, sharedBytes } = figures.get(symbol);
    const cells = [names[i], target, instructions, registers, spilledBytes, sharedBytes];
    return `| ${cells.join(' | ')} |`;
  });
  return rows.sort();
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
