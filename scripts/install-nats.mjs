// Installs a NATS server into build/nats for the cluster tests. It comes from Debian forky and needs only glibc 2.34;
// the version in Debian 12 cannot sync every message before acknowledging it.
//
//   node scripts/install-nats.mjs                  downloads from the mirror apt uses and checks Debian's signatures
//   … --if-possible                                on failure, prints one line and exits with 0
//
// The system itself is left unchanged.

import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SUITE = 'forky';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const TIMEOUT_MS = 300_000;

const target = fileURLToPath(new URL('../build/nats', import.meta.url));
const program = join(target, 'nats-server');

try {
  console.log(existsSync(program) ? versionOf(program) : install());
} catch (error) {
  if (!process.argv.includes('--if-possible')) throw error;
  console.log(`skipped: no NATS server was installed: ${error.message.split('\n')[0]}`);
}

function install() {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-nats-'));
  try {
    for (const name of ['lists/partial', 'cache/archives/partial', 'root']) {
      mkdirSync(join(folder, name), { recursive: true });
    }
    const sources = join(folder, 'sources.list');
    writeFileSync(sources, `deb [signed-by=${KEYRING}] ${findMirror()} ${SUITE} main\n`);
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
    run('apt-get', [...flags, 'download', '-qq', 'nats-server'], folder);
    const archive = readdirSync(folder).find((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error('apt-get downloaded no package');
    run('dpkg', ['-x', archive, 'root'], folder);
    const found = ['usr/sbin', 'usr/bin']
      .map((place) => join(folder, 'root', place, 'nats-server'))
      .find(existsSync);
    if (found === undefined) throw new Error(`Expected nats-server in ${archive}; found none`);
    const version = versionOf(found);
    mkdirSync(target, { recursive: true });
    copyFileSync(found, program);
    return version;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
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

function versionOf(file) {
  return run(file, ['--version'], '/').trim();
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
