// Which nodes of a cluster an import writes to, by the records of the cluster and of the collection, and which of them
// turn out not to be what they seem.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  type Cluster,
  type CollectionRecord,
  createClient,
  SagittaClientError,
} from '@sagitta/client';
import { findOtherTargets } from '../../src/cli/import/targets.js';
import type { UploadTarget } from '../../src/cli/import/uploader.js';

type Node = Cluster['nodes'][number];

const RECORD = { id: 'docs', created_at: '2026-11-30T12:00:00.000Z' } as CollectionRecord;

function nodeOf(name: string, rest: Partial<Node> = {}): Node {
  const defaults = { url: `http://${name}:8484`, state: 'serving', drain: 'none' } as const;
  return { name, ...defaults, ...rest } as Node;
}

interface Setup {
  readonly nodes: readonly Node[];
  /** The node that replies; null outside a cluster. */
  readonly own?: string | null;
  readonly url?: string;
  readonly holders?: readonly string[];
  /** The reply of another node to a request. */
  readonly reply?: (url: string) => object;
}

/** The targets, with the addresses of their nodes and the requests that they receive. */
async function find({ nodes, own = 'n0', url = 'http://n0:8484', holders, reply }: Setup) {
  const urls: string[] = [];
  const requests: string[] = [];
  const notes: string[] = [];
  const fetch = async (target: string | URL | Request): Promise<Response> => {
    requests.push(String(target));
    return Response.json(reply?.(String(target)) ?? RECORD);
  };
  const targets = await findOtherTargets({
    service: { cluster: async () => ({ node: own, nodes }) as Cluster },
    url,
    connectTo(address) {
      urls.push(address);
      return createClient({ baseUrl: address, fetch, retry: { attemptsMax: 1 } });
    },
    collection: 'docs',
    record: holders === undefined ? RECORD : { ...RECORD, nodes: holders },
    onNote: (text) => notes.push(text),
  });
  assert.equal(targets.length, urls.length);
  return { targets, urls, requests, notes };
}

const upload = (target: UploadTarget) => target.writeStream(() => [], { format: 'arrow' });

it('an import writes to at most four nodes, beginning after the one that replies', async () => {
  const nodes = ['n0', 'n1', 'n2', 'n3', 'n4'].map((name) => nodeOf(name));
  const own = 'n3';
  const { urls } = await find({ nodes, own, url: 'http://n3:8484' });
  assert.deepEqual(urls, ['http://n4:8484', 'http://n0:8484', 'http://n1:8484']);
});

it('only nodes that serve and are not drained take rows', async () => {
  const nodes = [
    nodeOf('n0'),
    nodeOf('n1', { state: 'joining', url: '' }),
    nodeOf('n2', { state: 'absent' }),
    nodeOf('n3', { state: 'leaving' }),
    nodeOf('n4', { drain: 'draining' }),
    nodeOf('n5', { url: 'ftp://n5' }),
    nodeOf('n6'),
  ];
  assert.deepEqual((await find({ nodes })).urls, ['http://n6:8484']);
});

it('only nodes that hold the collection take rows, if there are two', async () => {
  const nodes = ['n0', 'n1', 'n2', 'n3'].map((name) => nodeOf(name));
  const urlsWith = async (...holders: string[]) => (await find({ nodes, holders })).urls;
  assert.deepEqual(await urlsWith('n0', 'n2'), ['http://n2:8484']);
  assert.deepEqual(await urlsWith('n2', 'n3'), ['http://n2:8484', 'http://n3:8484']);
  // The server that the user named passes rows on to n2, which gets them all either way.
  assert.deepEqual(await urlsWith('n2'), []);
});

it('an import by TLS sends nothing to a node without it', async () => {
  const nodes = [
    nodeOf('n0', { url: 'https://n0' }),
    nodeOf('n1'),
    nodeOf('n2', { url: 'https://n2' }),
  ];
  assert.deepEqual((await find({ nodes, url: 'https://gateway' })).urls, ['https://n2']);
  const { urls } = await find({ nodes, url: 'http://n0:8484' });
  assert.deepEqual(urls, ['http://n1:8484', 'https://n2']);
});

it('the address that the user named is not used twice', async () => {
  const nodes = ['n0', 'n1', 'n2'].map((name) => nodeOf(name));
  const { urls } = await find({ nodes, own: 'n0', url: 'http://n1:8484/' });
  assert.deepEqual(urls, ['http://n2:8484']);
});

it('without a cluster or the permission to see it there are no other targets', async () => {
  assert.deepEqual((await find({ nodes: [], own: null })).targets, []);
  const refusal = new SagittaClientError('insufficient_scope', 'metrics:read is missing');
  const targets = await findOtherTargets({
    service: { cluster: () => Promise.reject(refusal) },
    url: 'http://n0:8484',
    connectTo: () => assert.fail(),
    collection: 'docs',
    record: RECORD,
    onNote: () => assert.fail(),
  });
  assert.deepEqual(targets, []);
});

it('a node is checked once, before its first upload', async () => {
  const { targets, requests } = await find({ nodes: [nodeOf('n0'), nodeOf('n1')] });
  assert.deepEqual(requests, []);
  await upload(targets[0]!);
  await upload(targets[0]!);
  const write = 'http://n1:8484/v1/collections/docs/vectors';
  assert.deepEqual(requests, ['http://n1:8484/v1/collections/docs', write, write]);
});

it('an address without this collection counts as unreachable and is left out by name', async () => {
  const replies: Record<string, () => object> = {
    unreachable: () => {
      throw new TypeError('fetch failed');
    },
    'another cluster': () => ({ ...RECORD, created_at: '2025-01-01T00:00:00.000Z' }),
    'another service': () => [],
  };
  for (const [name, reply] of Object.entries(replies)) {
    const nodes = [nodeOf('n0'), nodeOf('n1')];
    const { targets, requests, notes } = await find({ nodes, reply });
    await assert.rejects(upload(targets[0]!), (error: unknown) => {
      assert.ok(error instanceof SagittaClientError);
      assert.equal(error.code, 'network_error', name);
      targets[0]!.onLeftOut!(error);
      return true;
    });
    assert.equal(requests.length, 1, name);
    assert.deepEqual(notes, [
      'continuing without the node http://n1:8484: its address does not lead to a node of this cluster from here',
    ]);
  }
});
