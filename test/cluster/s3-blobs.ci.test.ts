// Blobs in a bucket of Ceph, which has the interface of S3: the contract, and a cluster whose nodes share them.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { S3Blobs, type S3Settings } from '../../src/cluster/blobs/s3-blobs.js';
import { JetStreamStream } from '../../src/cluster/service/jetstream-stream.js';
import { eventually } from '../support/waiting.js';
import { blobsContract, listAll } from './blobs-contract.js';
import { CephServers, cephMissing } from './ceph-servers.js';
import { NatsServers, natsMissing } from './nats-servers.js';
import { patientFetch } from './patient-fetch.js';
import { RunningCluster } from './running-cluster.js';

const missing = cephMissing();

describe('blobs in a bucket of Ceph', { skip: missing ?? false }, () => {
  let ceph: CephServers;
  before(async () => {
    ceph = await CephServers.start();
  });
  after(() => ceph?.stop());
  let count = 0;
  const open = (changes: Partial<S3Settings> = {}) =>
    new S3Blobs({ ...ceph.settings, prefix: `${++count}/`, ...changes });
  blobsContract(() => open());

  it('list more names than fit in one reply', async () => {
    const blobs = open();
    const names = Array.from({ length: 1_001 }, (_, i) => `n/${String(i).padStart(4, '0')}`);
    for (let at = 0; at < names.length; at += 100) {
      await Promise.all(names.slice(at, at + 100).map((name) => blobs.put(name, [])));
    }
    assert.deepEqual(await listAll(blobs, 'n/'), names);
  });

  it('tell a missing bucket and a wrong key from a missing blob', async () => {
    await assert.rejects(open({ bucket: 'none' }).get('a'), /404 to reading a: .*NoSuchBucket/s);
    await assert.rejects(open({ secretAccessKey: 'wrong' }).get('a'), /403 to reading a/);
  });

  it('give new nodes the data, after the logs were trimmed', {
    skip: natsMissing() ?? false,
  }, async () => {
    const nats = await NatsServers.start();
    const blobStore = { kind: 's3', ...ceph.settings, prefix: 'cluster/' } as const;
    const config = { blobStore, clusterSnapshotBytes: 100_000 };
    const cluster = await RunningCluster.start({ nats, name: 's3', config });
    const connection = await nats.connect();
    try {
      const send = async (path: string, body: unknown) => {
        const headers = { 'content-type': 'application/json' };
        const init = { method: 'POST', headers, body: JSON.stringify(body) };
        const { status, text } = await patientFetch(`${cluster.urlOf('n1')}/v1${path}`, init);
        assert.equal(status, 200, text);
      };
      await send('/collections', { id: 'c', dimension: 2 });
      await send('/collections/c/vectors', { vectors: [{ id: 'first', values: [3, 4] }] });
      const names = await connection.manager.streams.names().next();
      const streams = names.map((name) => new JetStreamStream(connection, name));
      let written = 0;
      await eventually('a log that begins with a snapshot', async () => {
        const vectors = Array.from({ length: 2_000 }, () => ({
          id: `${++written}`,
          values: [1, 2],
        }));
        await send('/collections/c/vectors', { vectors });
        const firsts = await Promise.all(streams.map((stream) => stream.firstPosition()));
        return firsts.some((position) => position !== null && position > 1);
      });
      await cluster.remove('n1');
      await cluster.add('n4');
      const read = `${cluster.urlOf('n4')}/v1/collections/c/vectors/first`;
      const strong = { headers: { 'sagitta-consistency': 'strong' } };
      const { status, text } = await patientFetch(read, strong);
      assert.equal(status, 200, text);
      assert.deepEqual(JSON.parse(text).values, [3, 4]);
      const stored = await listAll(new S3Blobs(blobStore));
      for (const folder of ['archive/', 'snapshots/']) {
        assert.ok(
          stored.some((name) => name.startsWith(folder)),
          `${folder} in ${stored}`,
        );
      }
    } finally {
      await connection.close();
      await cluster.stop();
      await nats.stop();
    }
  });
});
