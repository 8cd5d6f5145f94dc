// Digests of collections, which compare nodes of a cluster, or a service with its backup.

import { z } from 'zod';
import type { CollectionDigest } from '../../database/bulk/digest.js';
import type { RequestContext } from '../requests/request-context.js';
import type { Route, RouteServices } from '../requests/route.js';
import { defineJsonRoute } from './json-route.js';

/** How long to wait until this node has applied what other nodes committed before the call. */
const CURRENT_MS_MAX = 10_000;

interface NodeDigest {
  readonly node: string;
  readonly vectorCount?: number;
  readonly digest?: string;
  readonly problem?: string | undefined;
}

export function digestRoutes(services: RouteServices): Route[] {
  const { database, forwarder, schemas } = services;
  return [
    defineJsonRoute(services, {
      method: 'GET',
      path: '/collections/{id}/digest',
      operationId: 'getCollectionDigest',
      tag: 'Collections',
      summary: 'Compute a digest of a collection at a sequence',
      description:
        'Covers ids, sequences, vectors and metadata of all rows, and reads all of them. It is the sum of the SHA-256 of the rows, modulo 2^256: it is the same wherever the same writes were applied, and the digests of parts of a collection add up to that of the whole.',
      access: { scope: 'vectors:read', on: 'path' },
      query: z.strictObject({
        sequence: z
          .int()
          .min(0)
          .optional()
          .meta({
            description:
              'The sequence of a write, for which the request waits. Rows that were deleted later are covered as long as cursors could read them. By default the last write.',
            examples: [33],
          }),
        all_nodes: z
          .boolean()
          .default(false)
          .meta({
            description:
              'Whether to include the digests of all nodes of the cluster that hold the collection in `nodes`. Each node reads all rows.',
            examples: [true],
          }),
      }),
      body: null,
      reply: schemas.cluster.digest,
      errors: ['collection_not_found', 'collection_unavailable', 'deadline_exceeded'],
      mayTakeLong: true,
      async handle(request) {
        const id = request.params.id!;
        const { sequence, allNodes } = request.query;
        const problem =
          allNodes && sequence === undefined ? await catchUp(services, id) : undefined;
        const collection = database.collection(id);
        const own = await collection.digest({ sequence }, { signal: request.signal });
        if (!allNodes) return own;
        const nodes = forwarder === null ? [] : await fetchReplicaDigests(services, request, own);
        const self = forwarder?.cluster.self.node;
        if (self !== undefined) nodes.push({ node: self, ...own, problem });
        nodes.sort((a, b) => (a.node < b.node ? -1 : 1));
        return { ...own, nodes };
      },
    }),
  ];
}

/** Waits until this node has applied every acknowledged write. Returns the reason if it has not. */
async function catchUp(
  { database, forwarder }: RouteServices,
  id: string,
): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(CURRENT_MS_MAX);
    await forwarder?.cluster.progress.whenCurrent(database.incarnationOf(id) ?? null, signal);
    return undefined;
  } catch {
    return `This node has not applied all committed writes within ${CURRENT_MS_MAX / 1_000} s.`;
  }
}

async function fetchReplicaDigests(
  { database, forwarder }: RouteServices,
  request: RequestContext<unknown>,
  { sequence }: CollectionDigest,
): Promise<NodeDigest[]> {
  const incarnation = database.incarnationOf(request.params.id!);
  const others = incarnation === undefined ? [] : forwarder!.replicasOf([incarnation]);
  const path = `/v1/collections/${encodeURIComponent(request.params.id!)}/digest?sequence=${sequence}`;
  const { principal, signal } = request;
  const id = request.problemContext.requestId;
  return await Promise.all(
    others.map(async (member): Promise<NodeDigest> => {
      const { node } = member;
      try {
        const digestRequest = { method: 'GET', path, principal, id } as const;
        const { status, text } = await forwarder!.ask(member, digestRequest, signal);
        const json: unknown = JSON.parse(text);
        if (status !== 200) return { node, problem: (json as { detail: string }).detail };
        const found = json as { readonly vector_count: number; readonly digest: string };
        return { node, vectorCount: found.vector_count, digest: found.digest };
      } catch (error) {
        return { node, problem: `It did not answer: ${(error as Error).message}` };
      }
    }),
  );
}
