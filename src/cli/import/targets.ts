// Chooses the nodes of a cluster that an import writes to besides the server that the user named. There may be none:
// without a cluster, without the permission to see it, or if the addresses of the nodes cannot be reached from here.

import {
  type Client,
  type Cluster,
  type ClusterNode,
  type CollectionRecord,
  SagittaClientError,
} from '@sagitta/client';
import type { UploadTarget } from './uploader.js';

/**
 * Targets at the same time, the server that the user named included. Each costs the memory of an upload, and one process
 * that reads and encodes rows does not keep more of them busy.
 */
const TARGETS_MAX = 4;

/** How long a node may take to show that it can be reached. */
const CHECK_MS_MAX = 5_000;

export interface TargetOptions {
  /** The part of the client of that server that describes its cluster. */
  readonly service: Pick<Client['service'], 'cluster'>;
  /** The address of that server. */
  readonly url: string;
  /** Makes a client with the same credentials for the address of another node. */
  readonly connectTo: (url: string) => Pick<Client, 'collections' | 'collection'>;
  /** The id or an alias of the collection. */
  readonly collection: string;
  readonly record: CollectionRecord;
  /** Receives a line for the user about a node that is left out. */
  readonly onNote: (text: string) => void;
}

export async function findOtherTargets(options: TargetOptions): Promise<readonly UploadTarget[]> {
  const { service, record, url } = options;
  // Most often `insufficient_scope`. If the server has failed, the first upload reports it.
  const cluster = await service.cluster().catch(() => undefined);
  if (cluster === undefined) return [];
  return otherNodeUrls(cluster, record, url).map((each) => nodeTarget(each, options));
}

/**
 * The addresses of the nodes; none unless at least two nodes would take rows. They begin after the node that has replied,
 * so that imports through different nodes use different ones.
 */
function otherNodeUrls(
  { node: replying, nodes }: Cluster,
  { nodes: holders }: CollectionRecord,
  given: string,
): readonly string[] {
  const at = nodes.findIndex(({ name }) => name === replying);
  const others = [...nodes.slice(at + 1), ...nodes.slice(0, Math.max(0, at))];
  const isHolder = (name: string | null): boolean =>
    name !== null && (holders === undefined || holders.includes(name));
  const urls = others
    .filter((node) => isHolder(node.name) && isUsable(node, new URL(given)))
    .map(({ url }) => url);
  // A server that does not hold the collection passes its uploads on to a node that does.
  const isAlone = urls.length + (isHolder(replying) ? 1 : 0) < 2;
  return isAlone ? [] : urls.slice(0, TARGETS_MAX - 1);
}

function isUsable({ state, drain, url }: ClusterNode, given: URL): boolean {
  // A node that is drained is about to be stopped.
  if (state !== 'serving' || drain !== 'none' || !URL.canParse(url)) return false;
  const { protocol, origin } = new URL(url);
  // Behind a load balancer, the given address may be that of another node than the one that has replied.
  if (origin === given.origin) return false;
  // A user who asked for TLS wants it for the key and the rows, whatever the nodes announce.
  return protocol === 'https:' || (protocol === 'http:' && given.protocol === 'http:');
}

/** A node that is checked before its first upload. */
function nodeTarget(url: string, options: TargetOptions): UploadTarget {
  const { connectTo, collection, onNote } = options;
  const client = connectTo(url);
  let check: Promise<void> | undefined;
  return {
    async writeStream(...upload) {
      check ??= checkNode(client, options);
      await check;
      return client.collection(collection).writeStream(...upload);
    },
    onLeftOut(error) {
      const reason = error instanceof SagittaClientError ? error.detail : String(error);
      onNote(`continuing without the node ${url}: ${reason}`);
    },
  };
}

/**
 * Throws `network_error` unless the node has this very collection: from here, an address of the network of the nodes may
 * lead nowhere, or to another service. The reply also tells the client which state of the cluster the node must have
 * reached before it takes rows, since the collection may be new.
 */
async function checkNode(
  { collections }: Pick<Client, 'collections'>,
  { collection, record }: TargetOptions,
): Promise<void> {
  let cause: unknown;
  try {
    const signal = AbortSignal.timeout(CHECK_MS_MAX);
    const { id, created_at } = await collections.get(collection, { signal });
    if (id === record.id && created_at === record.created_at) return;
  } catch (error) {
    cause = error;
  }
  const detail = 'its address does not lead to a node of this cluster from here';
  throw new SagittaClientError('network_error', detail, { cause });
}
