// The packages as npm would publish them, and new projects that install them. Needs a package registry and the output
// of `npm run build`.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PACKAGES = ['sagitta', '@sagitta/client', '@sagitta/langchain'] as const;
/** Only catches hangs: compiling the kernels takes minutes on a busy machine. */
const RUN_MS_MAX = 900_000;

/** The reason for skipping tests that install packages, or false if they can run. */
export const NO_REGISTRY = findRegistry();

export interface Workshop {
  /** The archive of each package. */
  readonly archives: Readonly<Record<(typeof PACKAGES)[number], string>>;
  readonly folder: string;
  /** Creates a project with the given files and installs the given packages in it. */
  makeProject(
    name: string,
    packages: readonly string[],
    files?: Readonly<Record<string, string>>,
  ): Promise<string>;
  remove(): Promise<void>;
}

export async function openWorkshop(): Promise<Workshop> {
  const folder = await mkdtemp(join(tmpdir(), 'sagitta-packages-'));
  const script = join(ROOT, 'scripts/packages/pack.mjs');
  const packed = JSON.parse((await run(process.execPath, [script])).stdout) as readonly {
    readonly name: string;
    readonly archive: string;
  }[];
  const archiveOf = (name: string) => {
    const found = packed.find((each) => each.name === name);
    assert.ok(found, `expected npm to pack ${name}, found ${packed.map((each) => each.name)}`);
    return found.archive;
  };
  return {
    archives: {
      sagitta: archiveOf('sagitta'),
      '@sagitta/client': archiveOf('@sagitta/client'),
      '@sagitta/langchain': archiveOf('@sagitta/langchain'),
    },
    folder,
    async makeProject(name, packages, files = {}) {
      const project = join(folder, name);
      await mkdir(project);
      const manifest = { name, version: '1.0.0', private: true, type: 'module' };
      await writeFile(join(project, 'package.json'), JSON.stringify(manifest));
      for (const [path, text] of Object.entries(files)) await writeFile(join(project, path), text);
      const quiet = ['--no-audit', '--no-fund', '--prefer-offline'];
      await run('npm', ['install', '--engine-strict', ...quiet, ...packages], { cwd: project });
      return project;
    },
    remove: () => rm(folder, { recursive: true }),
  };
}

/** Runs a command and returns what it prints. Throws with its output if it fails. */
export function run(
  command: string,
  words: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve, reject) => {
    const limits = { timeout: RUN_MS_MAX, maxBuffer: 64 * 1024 * 1024 };
    execFile(command, words, { ...options, ...limits }, (error, stdout, stderr) => {
      if (error === null) resolve({ stdout, stderr });
      else reject(new Error(`${command} ${words.join(' ')} failed:\n${stdout}${stderr}`));
    });
  });
}

function findRegistry(): string | false {
  const words = ['view', '@langchain/core', 'version', '--fetch-retries=0'];
  const { status, stderr } = spawnSync('npm', words, { encoding: 'utf8', timeout: 60_000 });
  if (status === 0) return false;
  const reason = /npm error (?:code )?(\w+)/.exec(stderr ?? '')?.[1] ?? 'no reply';
  return `needs a package registry: npm could not reach one (${reason})`;
}
