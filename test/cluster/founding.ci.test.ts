// Founding a cluster with the data of a service that was alone, or of a backup of a node, and going back.

import assert from 'node:assert/strict';
import { cp, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningServer, startServer } from '../../src/main.js';
import { backupDirectory, restoreBackups, verifyDirectory } from '../../src/offline.js';
import { loadConfig } from '../../src/platform/config.js';
import { BACKUP_BASE, restoreBackup } from '../../src/storage/backup.js';
import { eventually } from '../support/waiting.js';
import { NatsServers, natsMissing } from './nats-servers.js';
import { patientFetch } from './patient-fetch.js';
import { startNode, waitForLeader } from './running-cluster.js';

describe('a node that brings data into a cluster', { skip: natsMissing() ?? false }, () => {
  let nats: NatsServers;
  let folder: string;
  const running = new Set<RunningServer>();

  before(async () => {
    nats = await NatsServers.start();
    folder = await mkdtemp(join(tmpdir(), 'sagitta-founding-'));
  });
  after(async () => {
    for (const server of running) await server.stop();
    await nats?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const kept = async (starting: Promise<RunningServer>): Promise<RunningServer> => {
    const server = await starting;
    running.add(server);
    return server;
  };
  const stop = async (server: RunningServer): Promise<void> => {
    running.delete(server);
    await server.stop();
  };
  /** Starts a service without a cluster. */
  const alone = async (dataDir: string): Promise<RunningServer> => {
    const usual = loadConfig({ env: {} });
    const server = await kept(
      startServer({
        ...usual,
        port: 0,
        engine: 'reference',
        logLevel: 'error',
        threads: 1,
        dataDir,
      }),
    );
    await server.loaded;
    return server;
  };
  const startIn = (cluster: string, node: string, isFounding = false): Promise<RunningServer> =>
    kept(
      startNode({
        nats,
        name: cluster,
        node,
        folder: join(folder, cluster),
        config: { clusterFound: isFounding, backupDir: join(folder, 'backups') },
      }),
    );

  async function post(server: RunningServer, path: string, body: unknown): Promise<unknown> {
    const { status, text } = await patientFetch(`${server.url}/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(status, 200, text);
    return JSON.parse(text);
  }
  const write = (server: RunningServer, id: string, collection = 'c') =>
    post(server, `/collections/${collection}/vectors`, { vectors: [{ id, values: [1, 2] }] });
  async function strongly<Reply>(server: RunningServer, path: string): Promise<Reply> {
    const headers = { 'sagitta-consistency': 'strong' };
    const { status, text } = await patientFetch(`${server.url}/v1${path}`, { headers });
    assert.equal(status, 200, text);
    return JSON.parse(text) as Reply;
  }
  async function digestAt(server: RunningServer, collection = 'c'): Promise<string> {
    const path = `/collections/${collection}/digest`;
    return (await strongly<{ digest: string }>(server, path)).digest;
  }
  interface Shown {
    readonly status: string;
    readonly nodes?: readonly string[];
    readonly move?: unknown;
    readonly replication_factor?: number;
    readonly vector_count: number;
  }
  const shown = async (server: RunningServer, collection: string): Promise<Shown> => {
    let found!: Shown;
    await eventually('a record of a node that holds it', async () => {
      found = await strongly<Shown>(server, `/collections/${collection}`);
      return found.status !== 'elsewhere';
    });
    return found;
  };

  it('is refused without the setting, and then gives the others everything', async () => {
    const single = await alone(join(folder, 'one', 'n1'));
    await post(single, '/collections', { id: 'c', dimension: 2, metric: 'dot' });
    for (let i = 0; i < 30; i++) await write(single, `v${i}`);
    await single.loaded;
    const before = await digestAt(single);
    await stop(single);
    await assert.rejects(startIn('one', 'n1'), {
      code: 'configuration_invalid',
      message: /SAGITTA_CLUSTER_FOUND=yes/,
    });
    const first = await startIn('one', 'n1', true);
    const others = [await startIn('one', 'n2'), await startIn('one', 'n3')];
    await waitForLeader([first, ...others].map(({ url }) => url));
    for (const server of [first, ...others]) assert.equal(await digestAt(server), before);
    await write(others[0]!, 'through another node');
    const later = await digestAt(first);
    assert.notEqual(later, before);
    for (const server of others) assert.equal(await digestAt(server), later);
  });

  it('is refused if another node has founded the cluster', async () => {
    const single = await alone(join(folder, 'one', 'late'));
    await post(single, '/collections', { id: 'c', dimension: 2, metric: 'dot' });
    await stop(single);
    await assert.rejects(startIn('one', 'late', true), { code: 'configuration_invalid' });
  });

  it('has a backup that a service without a cluster can use, and that can found another cluster', async () => {
    const [first] = running;
    const { name } = (await post(first!, '/backups', {})) as { name: string };
    const expected = await digestAt(first!);
    for (const target of ['single', join('two', 'n1')]) {
      await restoreBackup(join(folder, 'backups', name), join(folder, target));
    }
    const single = await alone(join(folder, 'single'));
    await single.loaded;
    assert.equal(await digestAt(single), expected);
    await write(single, 'alone');
    assert.notEqual(await digestAt(single), expected);
    await stop(single);
    const restored = await startIn('two', 'n1', true);
    const other = await startIn('two', 'n2');
    await waitForLeader([restored.url, other.url]);
    assert.equal(await digestAt(other), expected);
    await write(other, 'in the new cluster');
    assert.equal(await digestAt(restored), await digestAt(other));
    await stop(restored);
    // For a node of the cluster, the setting has no effect.
    const again = await startIn('two', 'n1', true);
    await waitForLeader([again.url, other.url]);
    assert.equal(await digestAt(again), await digestAt(other));
  });

  it('places collections on as many nodes as their replication factor', async () => {
    const single = await alone(join(folder, 'placed', 'n1'));
    const factors = { all: null, one: 1, two: 2, later: null };
    for (const [id, factor] of Object.entries(factors)) {
      const shape = { dimension: 2, metric: 'dot', replication_factor: factor };
      await post(single, '/collections', { id, ...shape });
      for (let i = 0; i < 5; i++) await write(single, `v${i}`, id);
    }
    await stop(single);
    const first = await startIn('placed', 'n1', true);
    assert.deepEqual((await shown(first, 'two')).nodes, ['n1']);
    assert.equal((await shown(first, 'all')).nodes, undefined);
    const body = JSON.stringify({ replication_factor: 2 });
    const headers = { 'content-type': 'application/json' };
    const path = `${first.url}/v1/collections/later`;
    const changed = await patientFetch(path, { method: 'PATCH', headers, body });
    assert.equal(changed.status, 200, changed.text);
    const digests = new Map<string, string>();
    for (const id of Object.keys(factors)) digests.set(id, await digestAt(first, id));
    const { name } = (await post(first, '/backups', {})) as { name: string };

    const others = [await startIn('placed', 'n2'), await startIn('placed', 'n3')];
    const servers = [first, ...others];
    await waitForLeader(servers.map(({ url }) => url));
    for (const [id, count] of Object.entries({ one: 1, two: 2, later: 2 })) {
      for (;;) {
        const { nodes = [], move } = await shown(first, id);
        if (nodes.length === count && move === undefined) break;
        await sleep(50);
      }
    }
    for (const server of servers) {
      assert.equal((await shown(server, 'all')).nodes, undefined);
      for (const id of Object.keys(factors)) {
        assert.equal((await shown(server, id)).vector_count, 5);
        assert.equal(await digestAt(server, id), digests.get(id), `${id} through ${server.url}`);
      }
    }
    await write(others[1]!, 'more', 'two');
    for (const server of servers) assert.equal((await shown(server, 'two')).vector_count, 6);

    // The backups of all nodes are complete together, although each contains only some of the collections.
    const backups: string[] = [];
    for (const server of servers) {
      // Each backup contains more of it than the one before.
      await write(servers[2]!, `before backup ${backups.length}`, 'all');
      await strongly(server, '/collections/all');
      const backup = (await post(server, '/backups', {})) as { name: string };
      backups.push(join(folder, 'backups', backup.name));
    }
    const after = new Map<string, string>();
    for (const id of Object.keys(factors)) after.set(id, await digestAt(first, id));
    const [holder] = (await shown(first, 'one')).nodes!;
    const without = backups.filter((_, i) => `n${i + 1}` !== holder);
    assert.deepEqual((await restoreBackups(without, join(folder, 'part'))).missing, ['one']);
    const whole = await restoreBackups(backups, join(folder, 'again', 'n1'));
    assert.deepEqual(whole.missing, []);
    assert.equal(whole.added.find(({ id }) => id === 'all')!.backup, backups[2]);
    const { counts, errorCount } = await verifyDirectory(join(folder, 'again', 'n1'));
    assert.deepEqual([counts.collections, errorCount], [4, 0]);
    const again = [await startIn('again', 'n1', true), await startIn('again', 'n2')];
    await waitForLeader(again.map(({ url }) => url));
    for (const server of again) {
      for (const id of Object.keys(factors))
        assert.equal(await digestAt(server, id), after.get(id));
    }
    const broken = join(folder, 'backups', 'broken');
    await cp(backups[1]!, broken, { recursive: true });
    const base = await open(join(broken, BACKUP_BASE), 'r+');
    await base.write(Buffer.alloc(64, 7), 0, 64, 256);
    await base.close();
    await assert.rejects(restoreBackups([backups[0]!, broken], join(folder, 'of broken')), {
      code: 'data_corrupt',
      message: /broken is damaged .* Leave it out/,
    });
    // The cluster founded with the backups has logs of its own, with other positions.
    const { name: ofOther } = (await post(again[0]!, '/backups', {})) as { name: string };
    await assert.rejects(
      restoreBackups([backups[0]!, join(folder, 'backups', ofOther)], join(folder, 'of two')),
      { code: 'configuration_invalid', message: /^Expected backups of nodes of one cluster/ },
    );
    for (const server of again) await stop(server);
    const foreign = join(folder, 'foreign');
    const other = await alone(foreign);
    await stop(other);
    await backupDirectory(foreign, join(folder, 'backups', 'foreign'));
    await assert.rejects(
      restoreBackups([backups[0]!, join(folder, 'backups', 'foreign')], join(folder, 'mixed')),
      { code: 'configuration_invalid', message: /found .*foreign, which is not one/ },
    );

    // The placements in the backup name nodes of another cluster.
    for (const server of servers) await stop(server);
    await restoreBackup(join(folder, 'backups', name), join(folder, 'moved', 'm1'));
    const restored = await startIn('moved', 'm1', true);
    for (const id of ['one', 'two', 'later']) {
      assert.deepEqual((await shown(restored, id)).nodes, ['m1'], id);
      assert.equal(await digestAt(restored, id), digests.get(id));
    }
    await write(restored, 'more', 'two');
  });
});
