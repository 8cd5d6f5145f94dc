// Compiles sources of kernels/ and keeps the results. A compiled file is named by a digest of all that goes into it:
// source, the headers that it includes, flags and compiler. It is kept in ~/.cache/sagitta/objects, or where
// SAGITTA_OBJECTS says, so that no other program, checkout or image compiles it again.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { KERNELS, textOf } from './targets.mjs';

const FOLDER = process.env.SAGITTA_OBJECTS ?? join(homedir(), '.cache', 'sagitta', 'objects');
/** The files that were not used for longest are removed. One build of all kernels for GPUs takes 0.4 GB. */
const BYTES_MAX = 2e9;

export class BuildError extends Error {}

/**
 * Compiles what is not kept yet, as many files at once as there are processors. A job is `{ source, command, flags,
 * versions, readFigures }`: `command` is the compiler with its words, of which only `flags` change the result, and
 * `versions` tells compilers and packages apart. Returns the jobs with `stamp`, `object` and `figures`: files named by
 * the digest, of which the second holds as JSON what `readFigures(folder, log)` has found in the compiler's temporary
 * files and output; null if no function is given.
 */
export async function compileAll(jobs) {
  mkdirSync(FOLDER, { recursive: true });
  const named = jobs.map((job) => {
    const inputs = filesReadBy(job.source).flatMap((path) => [path, textOf(path)]);
    const stamp = hashOf([...inputs, job.flags.join(' '), ...job.versions]);
    const figures = job.readFigures === null ? null : join(FOLDER, `${stamp}.json`);
    return { ...job, stamp, object: join(FOLDER, `${stamp}.o`), figures };
  });
  const missing = named.filter((job) => !isKept(job)).values();
  const workers = Array.from({ length: availableParallelism() }, async () => {
    for (const job of missing) await compile(job);
  });
  const results = await Promise.allSettled(workers);
  const failed = results.find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
  removeUnused();
  return named;
}

export function hashOf(parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex');
}

/** The source and all files of the project that it includes, directly or not, relative to kernels. */
function filesReadBy(source) {
  const found = new Set([source]);
  for (const path of found) {
    for (const [, name] of textOf(path).matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)) {
      const included = join(dirname(path), name);
      if (existsSync(join(KERNELS, included))) found.add(included);
    }
  }
  return [...found];
}

/** Whether the file is compiled already; it then counts as used now. */
function isKept({ object, figures }) {
  try {
    for (const path of [object, figures ?? object]) utimesSync(path, new Date(), new Date());
    return true;
  } catch {
    return false;
  }
}

async function compile({ source, command, object, figures, readFigures }) {
  // Files are renamed when they are whole, since other builds use the same folder.
  const scratch = mkdtempSync(join(FOLDER, 'new-'));
  try {
    const fresh = join(scratch, basename(object));
    const keep = figures === null ? [] : ['--keep', '--keep-dir', scratch];
    const log = await run(source, [...command, '-c', source, '-o', fresh, ...keep]);
    for (const line of log.match(/.*\(C7\d+\).*/g) ?? []) console.error(`${source}: ${line}`);
    if (figures !== null) {
      const path = join(scratch, basename(figures));
      writeFileSync(path, JSON.stringify(readFigures(scratch, log)));
      renameSync(path, figures);
    }
    renameSync(fresh, object);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Returns what the compiler has printed. */
function run(source, [command, ...words]) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, words, { cwd: KERNELS });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new BuildError(`${basename(source)} failed to compile\n${output}`));
    });
  });
}

/** Also removes the folders that a killed build has left, once they are the oldest. */
function removeUnused() {
  const kept = readdirSync(FOLDER)
    .map((name) => join(FOLDER, name))
    // Another build may have removed the file.
    .map((path) => ({ path, stat: statSync(path, { throwIfNoEntry: false }) }))
    .filter(({ stat }) => stat !== undefined)
    .sort((left, right) => right.stat.mtimeMs - left.stat.mtimeMs);
  let bytes = 0;
  for (const { path, stat } of kept) {
    bytes += stat.size;
    if (bytes > BYTES_MAX) rmSync(path, { force: true, recursive: true });
  }
}
