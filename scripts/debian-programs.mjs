// Installs programs of a Debian package into a folder of this checkout; the system itself is left unchanged. Packages
// come from the mirror that apt uses, and apt checks Debian's signatures. The user's cache keeps them by digest, so that
// another checkout downloads none. With the option --if-possible, a failure prints one line and ends with 0.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

const CACHE = join(homedir(), '.cache/sagitta/debian');
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const TIMEOUT_MS = 300_000;

/**
 * Installs what is missing, and prints the versions.
 *
 * @param options.packageName the package, from the release `options.suite` of Debian
 * @param options.programs names of programs in the package
 * @param options.target the folder that gets them
 */
export function installDebianPrograms(options) {
  const { packageName, programs, target } = options;
  try {
    if (!programs.every((name) => existsSync(join(target, name)))) install(options);
    for (const name of programs) console.log(versionOf(join(target, name)));
  } catch (error) {
    if (!process.argv.includes('--if-possible')) throw error;
    console.log(`skipped: ${packageName} was not installed: ${error.message.split('\n')[0]}`);
  }
}

function install({ packageName, suite, programs, target }) {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-debian-'));
  try {
    const archive = fetchPackage(packageName, suite, folder);
    run('dpkg', ['-x', archive, 'root'], folder);
    mkdirSync(target, { recursive: true });
    for (const name of programs) {
      const found = ['usr/sbin', 'usr/bin']
        .map((place) => join(folder, 'root', place, name))
        .find(existsSync);
      if (found === undefined) throw new Error(`Expected ${name} in ${archive}; found none`);
      versionOf(found);
      // A program exists in the target only if it is complete.
      copyFileSync(found, join(target, `${name}.new`));
      renameSync(join(target, `${name}.new`), join(target, name));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The path of the package in the cache. The lists of packages, which contain its digest, are read into `folder`. */
function fetchPackage(packageName, suite, folder) {
  for (const name of ['lists/partial', 'cache/archives/partial', 'root']) {
    mkdirSync(join(folder, name), { recursive: true });
  }
  const sources = join(folder, 'sources.list');
  writeFileSync(sources, `deb [signed-by=${KEYRING}] ${findMirror()} ${suite} main\n`);
  const options = {
    'Dir::Etc::SourceList': sources,
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State::Lists': join(folder, 'lists'),
    'Dir::Cache': join(folder, 'cache'),
    // apt's own user may not write to this folder.
    'APT::Sandbox::User': 'root',
  };
  const flags = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  run('apt-get', [...flags, 'update', '-qq'], folder);
  const offer = run('apt-get', [...flags, 'download', '--print-uris', packageName], folder);
  const digest = /\bSHA256:([0-9a-f]{64})\b/.exec(offer)?.[1];
  if (digest === undefined)
    throw new Error(`Expected the SHA-256 digest of ${packageName} from apt-get; found "${offer}"`);
  const kept = join(CACHE, `${packageName}-${digest}.deb`);
  if (existsSync(kept) && digestOf(kept) === digest) return kept;
  run('apt-get', [...flags, 'download', '-qq', packageName], folder);
  const archive = readdirSync(folder).find((name) => name.endsWith('.deb'));
  if (archive === undefined) throw new Error(`apt-get downloaded no package ${packageName}`);
  const found = digestOf(join(folder, archive));
  if (found !== digest)
    throw new Error(`Expected ${archive} with the SHA-256 digest ${digest}; found ${found}`);
  mkdirSync(CACHE, { recursive: true });
  for (const name of readdirSync(CACHE)) {
    if (name.startsWith(`${packageName}-`)) rmSync(join(CACHE, name));
  }
  copyFileSync(join(folder, archive), `${kept}.new`);
  renameSync(`${kept}.new`, kept);
  return kept;
}

/** The mirror that this system downloads Debian packages from. */
function findMirror() {
  const lines = run(
    'apt-get',
    ['indextargets', '--format', '$(SITE) $(LABEL)', 'Created-By: Packages'],
    '/',
  ).split('\n');
  const site = lines.map((line) => /^(\S+) Debian$/.exec(line)?.[1]).find(Boolean);
  if (site === undefined)
    throw new Error('Expected a Debian mirror in the sources of apt; found none');
  return site;
}

function digestOf(path) {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

function versionOf(file) {
  return run(file, ['--version'], '/').split('\n')[0];
}

function run(command, args, folder) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
  });
  if (error !== undefined) throw new Error(`${command}: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ${args.at(-1)} exited with ${status}: ${stderr}`);
  return stdout;
}
