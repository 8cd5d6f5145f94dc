// The nodes of the cluster and their shared files: list, verify, drain; and the internal routes between nodes.

import { z } from 'zod';
import { SagittaError } from '../../common/errors.js';
import { isWritable, toSeconds } from '../../common/problems.js';
import { ADDED_FILES_PATH, addFileForPeer, type EncodedFile } from '../cluster/added-files.js';
import type { Cluster, ClusterMemberStatus } from '../cluster/cluster.js';
import { decodePart, encodeCounts, encodeHits, SEARCH_PATH } from '../cluster/peer-searches.js';
import { RECORDS_PATH, type RecordsReply, type RecordsRequest } from '../cluster/remote-records.js';
import { parseJsonBody, readJsonBody } from '../ingest/parse-request.js';
import { bodyOf } from '../requests/idempotency.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import { jsonReply } from '../wire/reply.js';
import { defineJsonRoute } from './json-route.js';

export function clusterRoutes(services: RouteServices): Route[] {
  return [
    ...(services.forwarder === null
      ? []
      : [searchRoute(services), recordsRoute(services), addedFilesRoute(services)]),
    getCluster(services),
    verifyFiles(services),
    drainRoute(services, true, {
      method: 'PUT',
      operationId: 'drainNode',
      summary: 'Prepare a node of the cluster for being stopped',
      description:
        'Other nodes take over all writes from it, and it takes over none as long as another node can. `GET /cluster` shows when it is `drained`: it can then be stopped without a pause of writes. It continues to answer requests. It stays drained after a restart, until `DELETE` on the same path. If all nodes are drained, those that carry out writes continue to do so.',
      audit: 'node.drain',
    }),
    drainRoute(services, false, {
      method: 'DELETE',
      operationId: 'undrainNode',
      summary: 'Let a drained node of the cluster take over writes again',
      audit: 'node.undrain',
    }),
  ];
}

const NO_CLUSTER = {
  node: null,
  leader: null,
  nodes: [],
  collections: [],
  logServers: [],
  durability: null,
} as const;

function getCluster(services: RouteServices): Route {
  const { database, forwarder, schemas } = services;
  return defineJsonRoute(services, {
    method: 'GET',
    path: '/cluster',
    operationId: 'getCluster',
    tag: 'Service',
    summary: 'List the nodes of the cluster and which of them carry out writes',
    access: { scope: 'metrics:read', on: 'service' },
    body: null,
    reply: schemas.cluster.cluster,
    errors: [],
    isAlwaysServed: true,
    handle() {
      if (forwarder === null) return { ...NO_CLUSTER, isWritable: isWritable(services.problems()) };
      const { self, leader, members, collections, servers, durability } =
        forwarder.cluster.health.status;
      const logServers = servers.map(({ name, isLeader, silentMs, lag }) => ({
        name,
        isLeader,
        silentSeconds: toSeconds(silentMs),
        lag,
      }));
      return {
        node: self.node,
        leader: leader?.node ?? null,
        isWritable: isWritable(services.problems()),
        nodes: members.map(toNodeRecord),
        collections: collections.flatMap(({ incarnation, ...problem }) => {
          const id = database.idOf(incarnation);
          return id === undefined ? [] : [{ id, ...problem }];
        }),
        logServers,
        durability,
      };
    },
  });
}

function verifyFiles(services: RouteServices): Route {
  const { forwarder, schemas } = services;
  return defineJsonRoute(services, {
    method: 'GET',
    path: '/cluster/files',
    operationId: 'verifyClusterFiles',
    tag: 'Service',
    summary: 'Check the logs and the shared files of the cluster for damage',
    description:
      'Reads all of them and changes nothing. Of each log, the responding replica is read.',
    access: { scope: 'admin', on: 'service' },
    body: null,
    reply: schemas.cluster.files,
    errors: [],
    mayTakeLong: true,
    handle: async ({ signal }) => ({
      files: (await forwarder?.cluster.verifyFiles(signal)) ?? [],
    }),
  });
}

/** `isOn` is whether the route starts the drain or ends it. */
function drainRoute(
  services: RouteServices,
  isOn: boolean,
  route: Pick<Route, 'method' | 'operationId' | 'summary' | 'description' | 'audit'>,
): Route {
  const cluster = services.forwarder?.cluster;
  return defineJsonRoute(services, {
    ...route,
    path: '/cluster/nodes/{node}/drain',
    tag: 'Service',
    access: { scope: 'admin', on: 'service' },
    body: null,
    reply: services.schemas.cluster.node,
    errors: ['node_not_found', 'storage_full'],
    async handle({ params }) {
      const node = params.node!;
      const found = await cluster?.drain(node, isOn);
      if (found == null) throw nodeNotFound(cluster, node);
      return toNodeRecord(found);
    },
  });
}

/** Throws `node_not_found`. */
export function requireNode(cluster: Cluster | undefined, node: string): void {
  const isPresent = cluster?.present.some((member) => member.node === node) ?? false;
  if (!isPresent) throw nodeNotFound(cluster, node);
}

function nodeNotFound(cluster: Cluster | undefined, node: string): SagittaError {
  const names = cluster?.present.map((member) => member.node).join(', ');
  const known =
    names === undefined ? 'this service is not a node of a cluster' : `expected one of ${names}`;
  return new SagittaError('node_not_found', `No node is named ${JSON.stringify(node)}; ${known}.`);
}

/** The record of a node in replies. */
function toNodeRecord({ node: name, ...member }: ClusterMemberStatus) {
  return { name, ...member };
}

/** An internal route between nodes. */
function recordsRoute(services: RouteServices): Route {
  const schema = z.object({
    incarnations: z.array(z.string()),
    isStrong: z.boolean(),
    seen: z.record(z.string(), z.number()),
  });
  return defineRoute({
    method: 'POST',
    path: RECORDS_PATH,
    operationId: 'readRecords',
    tag: 'Service',
    summary: 'Read the records of collections that this node holds',
    access: 'anyone',
    body: schema,
    reply: z.unknown(),
    errors: [],
    runsOnAnyNode: true,
    isInternal: true,
    async handle(request) {
      const { database, forwarder } = services;
      const { incarnations, isStrong, seen }: RecordsRequest = await readJsonBody(
        services,
        request,
        schema,
      );
      const { cluster } = forwarder!;
      const { signal } = request;
      await Promise.all(
        incarnations.map((each) =>
          isStrong
            ? cluster.progress.whenCurrent(each, signal)
            : cluster.progress.whenSeen(each, seen, signal),
        ),
      );
      const records = database.recordsHeld(incarnations);
      const reply: RecordsReply = {
        records,
        positions: cluster.progress.positionsOf(incarnations),
      };
      return jsonReply(JSON.stringify(reply));
    },
  });
}

/** An internal route between nodes. */
function addedFilesRoute(services: RouteServices): Route {
  return defineRoute({
    method: 'POST',
    path: ADDED_FILES_PATH,
    operationId: 'addFile',
    tag: 'Service',
    summary: 'Commit a segment file that another node has shared',
    access: 'anyone',
    body: z.unknown(),
    reply: z.unknown(),
    errors: [],
    runsOnAnyNode: true,
    isInternal: true,
    async handle(request) {
      const encoded = bodyOf(await parseJsonBody(services, request)) as unknown as EncodedFile;
      const { database, forwarder } = services;
      const reply = await addFileForPeer({ database, forwarder: forwarder! }, encoded);
      return jsonReply(JSON.stringify(reply));
    },
  });
}

/** An internal route between nodes. */
function searchRoute(services: RouteServices): Route {
  return defineRoute({
    method: 'POST',
    path: SEARCH_PATH,
    operationId: 'searchPart',
    tag: 'Service',
    summary: 'Search a part of a collection',
    access: 'anyone',
    body: z.unknown(),
    reply: z.unknown(),
    errors: [],
    runsOnAnyNode: true,
    isInternal: true,
    async handle(request) {
      const part = decodePart(bodyOf(await parseJsonBody(services, request)));
      const { database } = services;
      const { signal } = request;
      if (part.kind === 'count') {
        return jsonReply(encodeCounts(await database.countForPeer(part, signal)));
      }
      return jsonReply(encodeHits(await database.searchForPeer(part, signal)));
    },
  });
}
