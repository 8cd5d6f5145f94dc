// The contract of logs, on JetStream with three real servers.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { TimeoutError } from '@nats-io/nats-core';
import { JetStreamStream } from '../../src/cluster/service/jetstream-stream.js';
import { logContract } from './log-contract.js';
import { NatsServers, natsMissing } from './nats-servers.js';

const missing = natsMissing();
const PATIENT = { publishMsMax: 60_000 };

describe('JetStream', { skip: missing ?? false }, () => {
  let servers: NatsServers;
  const connections: Awaited<ReturnType<NatsServers['connect']>>[] = [];
  before(async () => {
    servers = await NatsServers.start();
  });
  after(async () => {
    for (const connection of connections) await connection.close();
    await servers?.stop();
  });

  const connect = async () => {
    const connection = await servers.connect();
    connections.push(connection);
    return connection;
  };
  let count = 0;
  logContract('JetStream', {
    async create() {
      const stream = new JetStreamStream(await connect(), `log-${++count}`, PATIENT);
      await stream.create({ replicas: 3, messageBytesMax: 1_000_000 });
      return stream;
    },
    openAgain: async ({ name }) => new JetStreamStream(await connect(), name, PATIENT),
  });

  it('is read on with another consumer after a server is gone', async () => {
    const connection = await connect();
    const stream = new JetStreamStream(connection, 'restarted', PATIENT);
    await stream.create({ replicas: 3, messageBytesMax: 1_000 });
    const ending = new AbortController();
    const found: string[] = [];
    let openCount = 0;
    const onOpen = () => {
      openCount++;
    };
    for (const text of ['a', 'b']) await stream.announce('barrier', Buffer.from(text));
    const options = { shards: undefined, signal: ending.signal, onOpen };
    for await (const { position, bytes } of stream.read(0, options)) {
      found.push(`${position} ${Buffer.from(bytes)}`);
      if (position === 2) {
        connection.readers.restart();
        await stream.announce('barrier', Buffer.from('c'));
      }
      if (position === 3) break;
    }
    assert.deepEqual(found, ['1 a', '2 b', '3 c']);
    assert.ok(openCount >= 2, `${openCount} consumers`);
  });

  it('is read on, as soon as somebody waits, after its consumers were removed or deliver nothing', async () => {
    const connection = await connect();
    const { client, manager } = connection;
    const { name } = new JetStreamStream(connection, 'hanging');
    let openedCount = 0;
    const get = (stream: string, options: object) => {
      const isHanging = ++openedCount <= 2;
      const subjects = isHanging ? { filter_subjects: [`${name}.nothing`] } : {};
      return client.consumers.get(stream, { ...options, ...subjects });
    };
    const hanging = { ...connection, client: { consumers: { get } } as unknown as typeof client };
    const stream = new JetStreamStream(hanging, name, PATIENT);
    await stream.create({ replicas: 3, messageBytesMax: 1_000 });
    let end = await stream.announce('barrier', Buffer.from('a'));
    let last = 0;
    const isAwaited = () => last < end;
    const options = { shards: undefined, signal: new AbortController().signal, isAwaited };
    for await (const { position } of stream.read(0, options)) {
      last = position;
      if (position === 2) break;
      for await (const { name: consumer } of manager.consumers.list(name)) {
        await manager.consumers.delete(name, consumer);
      }
      end = await stream.announce('barrier', Buffer.from('b'));
    }
    assert.ok(openedCount >= 3, `${openedCount} consumers`);
  });

  it('is used with other sizes, and refused with settings of another version', async () => {
    const connection = await connect();
    const { streams } = connection.manager;
    const edited = new JetStreamStream(connection, 'edited');
    await edited.create({ replicas: 3, messageBytesMax: 1_000 });
    await edited.create({ replicas: 1, messageBytesMax: 2_000 });
    await streams.add({
      name: 'other',
      subjects: ['other.>'],
      num_replicas: 3,
      deny_delete: true,
      allow_atomic: true,
    });
    const other = new JetStreamStream(connection, 'other');
    await assert.rejects(other.create({ replicas: 3, messageBytesMax: 1_000 }), {
      code: 'configuration_invalid',
      message:
        'The log other in JetStream has other settings than this version of Sagitta gives it: found discard "old" instead of "new", allow_direct false instead of true. Another version has created it, or somebody has edited it. Set them back (nats stream edit other), or bring the data into a new cluster: docs/cluster.md, Update.',
    });
  });

  it('counts as trimmed when the server has done so without a reply', async () => {
    const connection = await connect();
    const { streams } = connection.manager;
    let isDone = true;
    const unanswered = Object.assign(Object.create(streams), {
      purge: async (...parameters: Parameters<typeof streams.purge>) => {
        if (isDone) await streams.purge(...parameters);
        throw new TimeoutError();
      },
      info: streams.info.bind(streams),
    }) as typeof streams;
    const manager = Object.create(connection.manager, { streams: { value: unanswered } });
    const stream = new JetStreamStream({ ...connection, manager }, 'unanswered');
    await new JetStreamStream(connection, 'unanswered').create({
      replicas: 3,
      messageBytesMax: 1_000,
    });
    const bytes = Buffer.from('x');
    for (let i = 0; i < 3; i++) await stream.announce('barrier', bytes);
    await stream.trimBefore(2);
    assert.equal(await stream.firstPosition(), 2);
    isDone = false;
    await assert.rejects(stream.trimBefore(3), TimeoutError);
  });
});

it('a log is written and read although the JetStream cluster has no leader', {
  skip: missing ?? false,
}, async () => {
  const servers = await NatsServers.start(5);
  try {
    const connection = await servers.connect();
    const stream = new JetStreamStream(connection, 'leaderless', PATIENT);
    await stream.create({ replicas: 3, messageBytesMax: 1_000 });
    await stream.announce('barrier', Buffer.from('before'));
    const { cluster } = await connection.manager.streams.info(stream.name);
    const storing = [cluster!.leader!, ...cluster!.replicas!.map(({ name }) => name)];
    const others = [0, 1, 2, 3, 4].filter((i) => !storing.includes(servers.nameOf(i)));
    const follower = [0, 1, 2, 3, 4].find((i) => servers.nameOf(i) === storing[2])!;
    // Two of five servers remain, and two of the three that store the log.
    for (const index of [...others, follower]) await servers.kill(index);
    await stream.announce('claim', Buffer.from('x'));
    const end = await stream.announce('barrier', Buffer.from('after'));
    const found: string[] = [];
    const ending = new AbortController();
    for await (const { position, channel, bytes } of stream.read(0, {
      shards: undefined,
      signal: ending.signal,
    })) {
      found.push(`${position} ${channel} ${Buffer.from(bytes)}`);
      if (position >= end) break;
    }
    assert.deepEqual(found, ['1 barrier before', '2 claim x', '3 barrier after']);
    await connection.close();
  } finally {
    await servers.stop();
  }
});
