// Checks the files for systemd: systemd accepts them, the service is well confined, and they agree with the settings of
// the server and with each other.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { EXIT_CODES } from '../../src/cli/terminal/failure.js';
import { describeSettings, loadConfig } from '../../src/platform/config.js';

/** The compiled test is at dist/test. */
const FOLDER = fileURLToPath(new URL('../../../deploy/systemd', import.meta.url));
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');
const unit = read('sagitta.service');

/** Tenths of the exposure level that systemd computes, from 0 for none to 100. */
const EXPOSURE_MAX = 20;

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
const skip = hasSystemd ? false : 'systemd-analyze is not installed';

/** The values of a directive, in order. */
function valuesOf(directive: string): string[] {
  const lines = unit.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'));
  return [...lines].map(([, value]) => value!);
}

/** Runs a systemd command on a copy of the unit that starts a program which exists here. */
function analyze(args: readonly string[], text = unit) {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-unit-'));
  try {
    const path = join(folder, 'sagitta.service');
    writeFileSync(path, text.replace('ExecStart=sagitta ', `ExecStart=${process.execPath} `));
    return spawnSync('systemd-analyze', [...args, path], { encoding: 'utf8' });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('systemd finds nothing wrong with the unit', { skip }, () => {
  const { status, stderr } = analyze(['verify']);
  // systemd also reports on the units of this machine that the service needs.
  const lines = stderr.split('\n').filter((line) => line.includes('sagitta'));
  assert.deepEqual([status, lines], [0, []]);
  const misspelt = analyze(['verify'], unit.replace('ProtectSystem', 'ProtectSysten'));
  assert.match(misspelt.stderr, /ProtectSysten/);
});

test('systemd considers the service well confined', { skip }, () => {
  const args = ['security', '--offline=yes', `--threshold=${EXPOSURE_MAX}`];
  const { status, stdout } = analyze(args);
  assert.equal(status, 0, stdout);
  assert.notEqual(analyze(args, unit.replace(/^Protect.*$/gm, '')).status, 0);
});

test('the unit may report through a command, and has time for a start', () => {
  assert.deepEqual(valuesOf('Type'), ['notify']);
  // The messages of systemd-notify do not come from the main process.
  assert.deepEqual(valuesOf('NotifyAccess'), ['all']);
  assert.deepEqual(valuesOf('WatchdogSec'), ['30']);
  assert.deepEqual(valuesOf('TimeoutStartSec'), ['infinity']);
  assert.ok(valuesOf('RestrictAddressFamilies')[0]!.includes('AF_UNIX'));
});

test('systemd accepts the files that create the user and the folders', { skip }, () => {
  const { status, stderr } = spawnSync(
    'systemd-sysusers',
    ['--dry-run', join(FOLDER, 'sagitta.sysusers.conf')],
    { encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
  const [, user] = /^u (\S+) /m.exec(read('sagitta.sysusers.conf'))!;
  assert.deepEqual([valuesOf('User'), valuesOf('Group')], [[user], [user]]);
  const folders = [...read('sagitta.tmpfiles.conf').matchAll(/^d (\S+) (\d+) (\w+) (\w+) -$/gm)];
  const [mode] = valuesOf('StateDirectoryMode');
  const [configurationMode] = valuesOf('ConfigurationDirectoryMode');
  assert.deepEqual(
    folders.map(([, ...fields]) => fields),
    [
      ...valuesOf('StateDirectory')[0]!
        .split(' ')
        .map((name) => [`/var/lib/${name}`, mode, user, user]),
      [`/etc/${valuesOf('ConfigurationDirectory')[0]}`, configurationMode, 'root', user],
    ],
  );
});

test('the settings in the unit exist and name folders that the service may write to', () => {
  const environment = valuesOf('Environment').map((pair) => pair.split('=') as [string, string]);
  const known = describeSettings().map(({ variable }) => variable);
  const settings = environment.filter(([name]) => name.startsWith('SAGITTA_'));
  assert.deepEqual(
    settings.filter(([name]) => !known.includes(name)),
    [],
  );
  const { dataDir, backupDir } = loadConfig({ env: Object.fromEntries(settings) });
  const writable = valuesOf('StateDirectory')[0]!
    .split(' ')
    .map((name) => `/var/lib/${name}`);
  assert.deepEqual([dataDir, backupDir], writable);
});

test('the limits in the unit fit the limits of the server', () => {
  const { shutdownMs, limits } = loadConfig({ env: {} });
  assert.ok(Number(valuesOf('TimeoutStopSec')[0]) * 1000 > shutdownMs);
  assert.ok(Number(valuesOf('LimitNOFILE')[0]) > 2 * limits.connectionsMax);
  assert.deepEqual(valuesOf('RestartPreventExitStatus'), [String(EXIT_CODES.usage)]);
});
