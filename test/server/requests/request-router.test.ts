// The decision where a request runs: for each kind of route, whoever carries out writes, holds the rows, and has
// forwarded the request.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { after, before, describe, it } from 'node:test';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Changes } from '../../../src/common/changes.js';
import { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { silentLogger } from '../../../src/common/logger.js';
import { createMetrics } from '../../../src/platform/metrics.js';
import { NodeKeys } from '../../../src/platform/node-keys.js';
import type { Cluster } from '../../../src/server/cluster/cluster.js';
import {
  type Destination,
  RequestForwarder,
} from '../../../src/server/cluster/request-forwarder.js';
import { RequestRouter } from '../../../src/server/requests/request-router.js';
import type { Owner, RouteServices } from '../../../src/server/requests/route.js';

/** What the decision depends on. */
interface Situation {
  /** Who carries out writes of the catalogue and of the collections. */
  readonly owner: 'here' | 'other' | 'none';
  /** Whether the node holds the collections. */
  readonly isHeld: boolean;
  /** The nodes that have forwarded the request; 0 for a request of a client. */
  readonly hopCount: number;
  /** Whether it was forwarded for the rows. */
  readonly needsRows: boolean;
}

/** A destination, or the code of an error, and what has been begun. */
interface Decision {
  readonly destination: Destination | null | string;
  readonly begun: readonly string[];
}

const HOPS_MAX = 4;
/** So long that a forwarded write no longer waits for an owner. */
const WAITED_MS = 60_000;
const ME = { instance: 'me/1', node: 'me', url: 'http://me', state: 'serving' };
const OTHER = { instance: 'other/1', node: 'other', url: 'http://127.0.0.1:9', state: 'serving' };

/** A node of a cluster without a network, which has the collections `a` and `b`. */
class FakeNode {
  readonly router: RequestRouter;
  readonly begun: string[] = [];
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly #closed = new EventEmitter();

  constructor({ owner, isHeld, hopCount, needsRows }: Situation, idInPath: string) {
    const begin = (what: string) => {
      this.begun.push(what);
      return () => {
        this.begun.splice(this.begun.indexOf(what), 1);
      };
    };
    let isOwner = owner === 'here';
    const cluster = {
      self: ME,
      present: owner === 'other' ? [ME, OTHER] : [ME],
      owns: () => isOwner,
      changes: new Changes(),
      ownerOf: () => ({ here: ME, other: OTHER, none: null })[owner],
      holds: () => isHeld,
      placementOf: () => ({ nodes: ['other'] }),
      beginWrite: (incarnation: string | null) => begin(`write of ${incarnation}`),
      beginRead: (incarnation: string) => begin(`read of ${incarnation}`),
      acquireCatalogue: async () => {
        isOwner = true;
      },
    } as unknown as Cluster;
    const forwarder = new RequestForwarder({
      cluster,
      keys: new NodeKeys(['known to the nodes and to nobody else'], 'fake'),
      metrics: createMetrics(),
      logger: silentLogger,
    });
    forwarder.close();
    const database = {
      incarnationOf: (id: string) => (id === 'a' || id === 'b' ? `${id}/1` : undefined),
      holds: () => isHeld,
    };
    const services = { database, limits: DEFAULT_LIMITS } as unknown as RouteServices;
    this.router = new RequestRouter(services, forwarder);
    this.request = {
      headers: {},
      params: { id: idInPath },
      collectionName: idInPath,
      incarnations: [],
      forwarded:
        hopCount === 0 ? null : { hopCount, needsRows, positions: {}, waitedMs: WAITED_MS },
      raw: {},
    } as unknown as FastifyRequest;
    this.reply = { raw: Object.assign(this.#closed, { socket: {} }) } as unknown as FastifyReply;
  }

  /** Everything that was begun ends with the reply. */
  end(): void {
    this.#closed.emit('close');
    assert.deepEqual(this.begun, []);
  }
}

async function decide(
  situation: Partial<Situation>,
  ask: (node: FakeNode) => Promise<Destination | null> | Destination | null,
  idInPath = 'a',
): Promise<Decision> {
  const all = {
    owner: 'other',
    isHeld: false,
    hopCount: 0,
    needsRows: false,
    ...situation,
  } as const;
  const node = new FakeNode(all, idInPath);
  let destination: Decision['destination'];
  try {
    destination = await ask(node);
  } catch (error) {
    assert.ok(error instanceof SagittaError);
    destination = error.code;
  }
  const begun = [...node.begun];
  node.end();
  return { destination, begun };
}

const HERE = 'here' as const;
const owner = (incarnation: string | null, isRead = false): Destination => ({
  kind: 'owner',
  incarnation,
  isRead,
});
const replica = (incarnations: readonly string[], isChange = false): Destination => ({
  kind: 'replica',
  incarnations,
  isChange,
});

type Row = readonly [
  situation: Partial<Situation>,
  destination: Destination | string,
  begun: readonly string[],
];

function check(
  rows: readonly Row[],
  ask: (node: FakeNode) => Promise<Destination | null> | Destination | null,
  idInPath?: string,
): void {
  for (const [situation, destination, begun] of rows) {
    const title = Object.entries(situation).map(([name, value]) => `${name} ${value}`);
    it(`with ${title.join(', ')}`, async () => {
      assert.deepEqual(await decide(situation, ask, idInPath), { destination, begun });
    });
  }
}

/** A route whose collections the headers determine. */
const inPath = (of: Owner) => ({ route: {}, owner: of, touchesPath: of !== 'catalogue' });
/** A write that any node which holds the collection carries out. */
const inBulk = { ...inPath('collection'), route: { isBulk: () => true } };
/** A route whose collections the body determines. */
const inBody = (of: Owner) => ({ route: {}, owner: of, touchesPath: false });

const OWN_WRITE = [
  [{ owner: 'other', hopCount: HOPS_MAX }, 'no_leader', []],
  [{ owner: 'none', isHeld: true, hopCount: 1 }, 'no_leader', []],
] as const;

// Waits for an owner end by timers that do not keep a process running, as a server does.
let running: NodeJS.Timeout;
before(() => {
  running = setInterval(() => {}, 1_000);
});
after(() => clearInterval(running));

describe('a change of the catalogue', () => {
  check(
    [
      [{ owner: 'here' }, HERE, ['write of null']],
      [{ owner: 'here', hopCount: HOPS_MAX }, HERE, ['write of null']],
      [{ owner: 'other' }, owner(null), []],
      [{ owner: 'other', hopCount: HOPS_MAX - 1 }, owner(null), []],
      // The node that has forwarded it does not hold the rows, so this one becomes the owner.
      [{ owner: 'other', hopCount: 1, needsRows: true }, HERE, ['write of null']],
      ...OWN_WRITE,
    ],
    ({ router, request, reply }) => router.destinationOfWrite(inPath('catalogue'), request, reply),
  );
});

describe('a change of the catalogue that needs rows', () => {
  check(
    [
      [{ isHeld: true }, HERE, ['read of a/1']],
      [{ isHeld: false }, replica(['a/1'], true), []],
    ],
    ({ router, request, reply }) => router.destinationOf('catalogue', ['a'], request, reply),
  );
});

describe('a write of the collection in the path', () => {
  const rows: readonly Row[] = [
    [{ owner: 'here' }, HERE, ['write of a/1']],
    [{ owner: 'other' }, owner('a/1'), []],
    [{ owner: 'other', isHeld: true }, owner('a/1'), []],
    [{ owner: 'none', isHeld: false, hopCount: 1 }, 'no_holder', []],
    ...OWN_WRITE,
  ];
  check(rows, ({ router, request, reply }) =>
    router.destinationOfWrite(inPath('collection'), request, reply),
  );
  describe('in bulk', () => {
    check(
      [
        [{ owner: 'here', isHeld: true }, HERE, ['read of a/1']],
        [{ owner: 'other', isHeld: true }, HERE, ['read of a/1']],
        [{ owner: 'other', isHeld: false }, owner('a/1'), []],
      ],
      ({ router, request, reply }) => router.destinationOfWrite(inBulk, request, reply),
    );
  });

  describe('or in the body', () => {
    check(rows, ({ router, request, reply }) =>
      router.destinationOf('collection', ['a'], request, reply),
    );

    it('is not decided by the headers', async () => {
      const found = await decide({}, ({ router, request, reply }) =>
        router.destinationOfWrite(inBody('collection'), request, reply),
      );
      assert.deepEqual(found, { destination: HERE, begun: [] });
    });
  });
});

describe('a write of an unknown collection', () => {
  check(
    [
      [{ owner: 'here' }, HERE, ['write of null']],
      [{ owner: 'other' }, owner(null), []],
    ],
    ({ router, request, reply }) => router.destinationOfWrite(inPath('collection'), request, reply),
    'unknown',
  );
});

describe('a read of the collection in the path', () => {
  const rows: readonly Row[] = [
    [{ owner: 'here', isHeld: true }, HERE, ['read of a/1']],
    [{ owner: 'other', isHeld: true }, HERE, ['read of a/1']],
    [{ owner: 'none', isHeld: true }, HERE, ['read of a/1']],
    [{ owner: 'other', isHeld: false }, replica(['a/1']), []],
    [{ owner: 'none', isHeld: false }, replica(['a/1']), []],
    [{ isHeld: false, hopCount: 1 }, replica(['a/1']), []],
  ];
  const wanted = { isStrong: false, seen: {} };
  check(rows, ({ router, request, reply }) =>
    router.destinationOfRead(inPath('any'), request, reply, wanted),
  );
  describe('or in the body', () => {
    check(rows, ({ router, request, reply }) => router.destinationOf('any', ['a'], request, reply));

    it('is not decided by the headers', async () => {
      const found = await decide({}, ({ router, request, reply }) =>
        router.destinationOfRead(inBody('any'), request, reply, wanted),
      );
      assert.deepEqual(found, { destination: null, begun: [] });
    });
  });
});

describe('a read of an unknown collection', () => {
  const read =
    (isStrong: boolean) =>
    ({ router, request, reply }: FakeNode) =>
      router.destinationOfRead(inPath('any'), request, reply, { isStrong, seen: {} });
  check(
    [
      [{ owner: 'here' }, HERE, []],
      [{ owner: 'other' }, owner(null, true), []],
      [{ owner: 'other', hopCount: 1 }, HERE, []],
      [{ owner: 'none' }, HERE, []],
    ],
    read(false),
    'unknown',
  );

  it('runs here if this node has the newest catalogue', async () => {
    const found = await decide({ owner: 'other' }, read(true), 'unknown');
    assert.deepEqual(found, { destination: HERE, begun: [] });
  });
});

describe('a read of two collections', () => {
  check(
    [
      [{ isHeld: true }, HERE, ['read of a/1', 'read of b/1']],
      [{ isHeld: false }, replica(['a/1', 'b/1']), []],
    ],
    ({ router, request, reply }) => router.destinationOf('any', ['a', 'b'], request, reply),
  );

  it('leaves those that do not exist to the handler', async () => {
    const found = await decide({ isHeld: true }, ({ router, request, reply }) =>
      router.destinationOf('any', ['a', 'unknown'], request, reply),
    );
    assert.deepEqual(found, { destination: HERE, begun: ['read of a/1'] });
  });
});
