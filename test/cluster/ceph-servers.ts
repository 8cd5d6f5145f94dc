// An object store of Ceph with the interface of S3 on loopback: a monitor, a disk in memory, and the gateway.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AwsClient } from 'aws4fetch';
import type { S3Settings } from '../../src/cluster/blobs/s3-blobs.js';
import { freePorts } from '../support/free-ports.js';
import { eventually } from '../support/waiting.js';

const PROGRAMS = ['ceph', 'ceph-authtool', 'ceph-mon', 'ceph-osd', 'monmaptool', 'radosgw'];
const COMMAND_MS_MAX = 120_000;
const CREDENTIALS = {
  region: 'default',
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};

/** Why the tests are skipped; undefined when they can run. */
export function cephMissing(): string | undefined {
  const missing = PROGRAMS.filter((name) => spawnSync(name, ['--version']).status !== 0);
  if (missing.length === 0) return undefined;
  return `there is no ${missing.join(', ')}; expected ceph-mon, ceph-osd and radosgw of Debian`;
}

export class CephServers {
  /** Of a bucket, without a prefix. */
  readonly settings: Omit<S3Settings, 'prefix'>;
  readonly #folder: string;
  readonly #children: ChildProcess[] = [];

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.settings = {
      endpoint: `http://127.0.0.1:${port}`,
      bucket: 'vectors',
      ...CREDENTIALS,
    };
  }

  /** Takes about ten seconds. */
  static async start(): Promise<CephServers> {
    const folder = mkdtempSync(join(tmpdir(), 'sagitta-ceph-'));
    const [monitor, gateway] = (await freePorts(2)) as [number, number];
    const servers = new CephServers(folder, gateway);
    try {
      servers.#configure(monitor, gateway);
      servers.#startStore(monitor);
      await servers.#startGateway();
      return servers;
    } catch (error) {
      await servers.stop();
      throw error;
    }
  }

  #configure(monitor: number, gateway: number): void {
    const folder = this.#folder;
    for (const name of ['mon', 'osd', 'rgw', 'run']) mkdirSync(join(folder, name));
    const configuration = {
      fsid: randomUUID(),
      mon_host: `[v2:127.0.0.1:${monitor}]`,
      ms_bind_ipv6: false,
      public_network: '127.0.0.0/8',
      cluster_network: '127.0.0.0/8',
      keyring: join(folder, 'keyring'),
      run_dir: join(folder, 'run'),
      crash_dir: join(folder, 'run'),
      log_file: join(folder, '$name.log'),
      mon_data: join(folder, 'mon'),
      // By default, a monitor ends when its disk is nearly full.
      mon_data_avail_crit: 1,
      mon_allow_pool_size_one: true,
      osd_data: join(folder, 'osd'),
      osd_objectstore: 'memstore',
      memstore_device_bytes: 1_073_741_824,
      osd_crush_chooseleaf_type: 0,
      osd_pool_default_size: 1,
      osd_pool_default_min_size: 1,
      osd_pool_default_pg_num: 1,
      osd_pool_default_pgp_num: 1,
      osd_pool_default_pg_autoscale_mode: 'off',
      mon_max_pg_per_osd: 1_000,
      rgw_data: join(folder, 'rgw'),
      rgw_frontends: `beast endpoint=127.0.0.1:${gateway}`,
      rgw_thread_pool_size: 16,
    };
    const lines = Object.entries(configuration).map(([name, value]) => `${name} = ${value}`);
    writeFileSync(this.#path('ceph.conf'), `[global]\n${lines.join('\n')}\n`);
  }

  #startStore(monitor: number): void {
    const keyring = this.#path('keyring');
    const users = {
      'mon.': ['mon', 'allow *'],
      'client.admin': ['mon', 'allow *', 'osd', 'allow *'],
      'osd.0': ['mon', 'allow profile osd', 'osd', 'allow *'],
    };
    this.#run('ceph-authtool', ['--create-keyring', keyring]);
    for (const [name, allowed] of Object.entries(users)) {
      const caps: string[] = [];
      for (let i = 0; i < allowed.length; i += 2) caps.push('--cap', allowed[i]!, allowed[i + 1]!);
      this.#run('ceph-authtool', [keyring, '--gen-key', '-n', name, ...caps]);
    }
    const map = this.#path('monitors');
    this.#run('monmaptool', ['--create', '--addv', 'a', `[v2:127.0.0.1:${monitor}]`, map]);
    this.#run('ceph-mon', ['-i', 'a', '--mkfs', '--monmap', map, '--keyring', keyring]);
    this.#start('ceph-mon', ['-i', 'a']);
    const disk = randomUUID();
    this.#run('ceph', ['osd', 'new', disk]);
    this.#run('ceph-osd', ['-i', '0', '--mkfs', '--osd-uuid', disk]);
    this.#start('ceph-osd', ['-i', '0']);
  }

  async #startGateway(): Promise<void> {
    const { accessKeyId, secretAccessKey, endpoint, bucket } = this.settings;
    const keys = ['--access-key', accessKeyId, '--secret-key', secretAccessKey];
    this.#run('radosgw-admin', [
      ...['user', 'create', '--uid', 'sagitta', '--display-name', 'sagitta'],
      ...keys,
    ]);
    this.#start('radosgw', ['-n', 'client.admin']);
    const client = new AwsClient({ ...CREDENTIALS, service: 's3', retries: 0 });
    await eventually('the gateway', async () => {
      const created = client.fetch(`${endpoint}/${bucket}`, { method: 'PUT' });
      return await created.then(({ ok }) => ok).catch(() => false);
    });
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  #run(program: string, words: readonly string[]): void {
    const { status, stdout, stderr } = spawnSync(
      program,
      ['--conf', this.#path('ceph.conf'), ...words],
      { encoding: 'utf8', timeout: COMMAND_MS_MAX },
    );
    if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr}${stdout}`);
  }

  #start(program: string, words: readonly string[]): void {
    const all = ['--conf', this.#path('ceph.conf'), ...words, '-f'];
    this.#children.push(spawn(program, all, { stdio: 'ignore' }));
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = new Promise((resolve) => child.once('exit', resolve));
        child.kill('SIGKILL');
        await ended;
      }),
    );
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
