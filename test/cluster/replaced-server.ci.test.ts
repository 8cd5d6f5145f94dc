// NATS servers that are replaced by others with other names, under running nodes, with the command for operators.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { packageFile } from '../../src/common/package-files.js';
import { eventually } from '../support/waiting.js';
import { NatsServers, natsMissing, SYSTEM_USER } from './nats-servers.js';
import { patientFetch } from './patient-fetch.js';
import { RunningCluster } from './running-cluster.js';

const missing = natsMissing();
const SYSTEM = {
  SAGITTA_CLUSTER_USER: SYSTEM_USER.user,
  SAGITTA_CLUSTER_PASSWORD: SYSTEM_USER.password,
};

describe('a NATS server that is gone for good', { skip: missing ?? false }, () => {
  let nats: NatsServers;
  let cluster: RunningCluster;

  before(async () => {
    nats = await NatsServers.start();
    cluster = await RunningCluster.start({ nats, name: 'replaced' });
    await create('before');
  });
  after(async () => {
    await cluster?.stop();
    await nats?.stop();
  });

  async function send(node: string, method: string, path: string, body: unknown): Promise<number> {
    const reply = await patientFetch(`${cluster.urlOf(node)}/v1${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return reply.status;
  }

  async function create(id: string): Promise<void> {
    assert.equal(await send('n1', 'POST', '/collections', { id, dimension: 2 }), 200);
  }

  async function insert(node: string, id: string): Promise<void> {
    const vectors = [{ id, values: [1, 2] }];
    assert.equal(await send(node, 'POST', '/collections/before/vectors', { vectors }), 200);
  }

  /** `sagitta cluster nats`, which does not need a node. */
  async function run(
    words: readonly string[] = [],
    login: Readonly<Record<string, string>> = SYSTEM,
  ) {
    const env = { PATH: process.env.PATH, SAGITTA_CLUSTER: nats.urls.join(), ...login };
    const program = packageFile('scripts/sagitta.cjs');
    const child = spawn(process.execPath, [program, 'cluster', 'nats', ...words], { env });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (text) => (stdout += text));
    child.stderr.on('data', (text) => (stderr += text));
    const code = await new Promise((resolve) => child.once('close', resolve));
    return { code, stdout, stderr };
  }

  it('is refused to a user who is not of the system account, such as a node', async () => {
    const { code, stderr } = await run([], {});
    assert.notEqual(code, 0);
    assert.match(stderr, /system account/);
  });

  it('shows the servers and what they store', async () => {
    await eventually('all replicas', async () => (await run()).code === 0);
    const { stdout } = await run();
    for (const name of ['n0', 'n1', 'n2']) assert.match(stdout, new RegExp(`^${name}.* up `, 'm'));
    assert.match(stdout, /2 of 2 logs have all replicas/);
  });

  it('cannot be removed while that would endanger messages', async () => {
    assert.match((await run(['--remove', 'n9'])).stderr, /expected one of n0, n1, n2/);
    assert.match((await run(['--remove', 'n2'])).stderr, /n2 is running/);
    await nats.kill(2);
    await eventually('a leader of the servers', async () => {
      const { stderr } = await run(['--remove', 'n2']);
      return stderr.includes('start another server first');
    });
    const { code, stdout } = await run();
    assert.notEqual(code, 0);
    assert.match(stdout, /n2 does not answer.*sagitta cluster nats --remove "n2"/);
  });

  it('is replaced by one with another name, so that the loss of a second one is harmless', async () => {
    const gone = await nats.replace(2);
    const added = nats.nameOf(2);
    await eventually('the new server', async () => (await run()).stdout.includes(`${added} `));
    await insert('n2', 'meanwhile');
    let removed!: Awaited<ReturnType<typeof run>>;
    // Refused while another replica is behind.
    await eventually('the removal', async () => {
      removed = await run(['--remove', gone, '--json']);
      return removed.code === 0;
    });
    const { servers, logCount, incomplete } = JSON.parse(removed.stdout);
    assert.deepEqual(
      servers.map(({ name, logCount: stored }: { name: string; logCount: number }) => [
        name,
        stored,
      ]),
      [
        ['n0', logCount],
        ['n1', logCount],
        [added, logCount],
      ],
    );
    assert.deepEqual(incomplete, []);
    // Without the removal, two of four members would be left, and nobody could take over a log.
    await nats.kill(1);
    await cluster.remove('n1');
    await insert('n3', 'after');
    await nats.restart(1);
    for (const id of ['meanwhile', 'after']) {
      const reply = await patientFetch(
        `${cluster.urlOf('n2')}/v1/collections/before/vectors/${id}`,
        {
          headers: { 'sagitta-consistency': 'strong' },
        },
      );
      assert.equal(reply.status, 200);
    }
  });

  it('leaves no trace when a server is added and another one is removed', async () => {
    const added = await nats.add();
    await eventually('the added server', async () => (await run()).stdout.includes(`${added} `));
    await nats.kill(0);
    // Refused until a new leader has heard from the other servers.
    await eventually('the removal', async () => {
      const { code, stdout } = await run(['--remove', 'n0']);
      return code === 0 && !/^n0/m.test(stdout);
    });
    await insert('n2', 'last');
  });
});
