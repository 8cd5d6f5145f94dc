// A request for every route that succeeds on the database below, for tests that cover all routes.

import type { Scope } from '../../src/common/access.js';
import { type ErrorCode, field } from '../../src/common/errors.js';
import type { Database } from '../../src/database/database.js';
import { batchOf } from '../database/harness.js';

export interface SampleRequest {
  /** The expected access of the route: a scope and its object, `anyone` or `public`. */
  readonly needs: string;
  /** Without a prefix; `{key}` stands for the id of an existing key. */
  readonly url: string;
  readonly body?: object;
  /** Another scope on the collection that the handler requires. */
  readonly alsoNeeds?: Scope;
  /** The error for a caller without any scope on the collection; by default `collection_not_found`. */
  readonly refusal?: ErrorCode;
  /** The status for an authorized caller; by default 200. */
  readonly status?: number;
}

/** The collection that the requests use. */
export const COLLECTION = 'catalog-1';

/** Requests by the id of their operation. */
export const SAMPLE_REQUESTS: Readonly<Record<string, SampleRequest>> = {
  createCollection: {
    needs: 'collections:write named',
    url: '/collections',
    body: { id: 'catalog-2', dimension: 2 },
    refusal: 'insufficient_scope',
  },
  cloneCollection: {
    needs: 'collections:write path',
    alsoNeeds: 'vectors:read',
    url: '/collections/catalog-1/clone',
    body: { id: 'catalog-2' },
  },
  renameCollection: {
    needs: 'collections:write path',
    alsoNeeds: 'vectors:read',
    url: '/collections/catalog-1/rename',
    body: { id: 'catalog-2' },
  },
  moveCollection: {
    needs: 'collections:write path',
    url: '/collections/catalog-1/move',
    body: { from: 'n1', to: 'n2' },
    status: 404,
  },
  listAliases: { needs: 'collections:read visible', url: '/aliases' },
  getAlias: {
    needs: 'collections:read named',
    url: '/aliases/catalog-a',
    refusal: 'alias_not_found',
  },
  putAlias: {
    needs: 'collections:write named',
    url: '/aliases/catalog-a',
    body: { collection: 'catalog-1' },
    refusal: 'insufficient_scope',
  },
  changeAliases: {
    needs: 'collections:write named',
    url: '/aliases',
    body: { aliases: [{ name: 'catalog-a', collection: 'catalog-1' }] },
    refusal: 'insufficient_scope',
  },
  deleteAlias: {
    needs: 'collections:write named',
    url: '/aliases/catalog-a',
    refusal: 'alias_not_found',
  },
  listCollections: { needs: 'collections:read visible', url: '/collections' },
  listSegments: { needs: 'collections:read path', url: '/collections/catalog-1/segments' },
  getCollection: { needs: 'collections:read path', url: '/collections/catalog-1' },
  updateCollection: {
    needs: 'collections:write path',
    url: '/collections/catalog-1',
    body: { description: 'new' },
  },
  deleteCollection: { needs: 'collections:write path', url: '/collections/catalog-1' },
  writeVectors: {
    needs: 'vectors:write path',
    url: '/collections/catalog-1/vectors',
    body: { id: 'n', values: [1, 2] },
  },
  putVector: {
    needs: 'vectors:write named',
    url: '/vectors/n',
    body: { values: [1, 2], collection: 'catalog-1' },
  },
  putVectorInCollection: {
    needs: 'vectors:write path',
    url: '/collections/catalog-1/vectors/n',
    body: { values: [1, 2] },
  },
  patchVector: {
    needs: 'vectors:write path',
    url: '/collections/catalog-1/vectors/a',
    body: { metadata: { x: 1 } },
  },
  deleteVector: { needs: 'vectors:write path', url: '/collections/catalog-1/vectors/a' },
  deleteVectors: {
    needs: 'vectors:write path',
    url: '/collections/catalog-1/vectors/delete',
    body: { ids: ['a'] },
  },
  aggregateCollection: {
    needs: 'vectors:read path',
    url: '/collections/catalog-1/aggregate',
    body: {},
  },
  getCollectionSchema: {
    needs: 'vectors:read path',
    url: '/collections/catalog-1/schema',
  },
  updateVectors: {
    needs: 'vectors:write path',
    url: '/collections/catalog-1/vectors/update',
    body: { ids: ['a'], patch: { x: 1 } },
  },
  getVector: { needs: 'vectors:read path', url: '/collections/catalog-1/vectors/a' },
  fetchVectors: {
    needs: 'vectors:read path',
    url: '/collections/catalog-1/vectors/fetch',
    body: { ids: ['a'] },
  },
  listVectors: { needs: 'vectors:read named', url: '/vectors?collection=catalog-1' },
  listVectorsInCollection: { needs: 'vectors:read path', url: '/collections/catalog-1/vectors' },
  listVectorsByBody: {
    needs: 'vectors:read path',
    url: '/collections/catalog-1/vectors/list',
    body: { limit: 1 },
  },
  listVectorsByBodyAnywhere: {
    needs: 'vectors:read named',
    url: '/vectors/list',
    body: { collection: 'catalog-1', limit: 1 },
  },
  countVectors: { needs: 'vectors:read path', url: '/collections/catalog-1/count', body: {} },
  query: {
    needs: 'vectors:read named',
    url: '/query',
    body: { vector: [1, 1], collection: 'catalog-1' },
  },
  queryCollection: {
    needs: 'vectors:read path',
    url: '/collections/catalog-1/query',
    body: { vector: [1, 1] },
  },
  exportVectors: { needs: 'vectors:read path', url: '/collections/catalog-1/export' },
  joinCollections: {
    needs: 'vectors:read path',
    url: '/collections/catalog-1/join',
    body: { top_k: 1 },
  },
  projectVectors: {
    needs: 'vectors:read path',
    url: '/collections/catalog-1/projection',
    body: { sample: 2 },
  },
  queryCollectionBatch: {
    needs: 'vectors:read path',
    url: '/collections/catalog-1/query/batch',
    body: { queries: [{ vector: [1, 1] }, { id: 'a' }] },
  },
  measureRecall: {
    needs: 'vectors:read path',
    url: '/collections/catalog-1/recall',
    body: { vectors: [[1, 1]], ids: [['a']] },
  },
  createKey: {
    needs: 'admin service',
    url: '/keys',
    body: { owner: 'x', scopes: ['vectors:read'] },
  },
  listKeys: { needs: 'admin service', url: '/keys' },
  getKey: { needs: 'admin service', url: '/keys/{key}' },
  rotateKey: { needs: 'admin service', url: '/keys/{key}/rotate', body: {} },
  revokeKey: { needs: 'admin service', url: '/keys/{key}' },
  createBackup: { needs: 'admin service', url: '/backups', body: {} },
  listBackups: { needs: 'admin service', url: '/backups' },
  getLimits: { needs: 'anyone', url: '/limits' },
  listAuditEvents: { needs: 'admin service', url: '/audit' },
  getPrincipal: { needs: 'anyone', url: '/principal' },
  getService: { needs: 'public', url: '/' },
  getLiveness: { needs: 'public', url: '/livez' },
  getReadiness: { needs: 'public', url: '/readyz' },
  getCollectionDigest: { needs: 'vectors:read path', url: '/collections/catalog-1/digest' },
  verifyClusterFiles: { needs: 'admin service', url: '/cluster/files' },
  getCluster: { needs: 'metrics:read service', url: '/cluster' },
  drainNode: { needs: 'admin service', url: '/cluster/nodes/n1/drain', status: 404 },
  undrainNode: { needs: 'admin service', url: '/cluster/nodes/n1/drain', status: 404 },
  getTraffic: { needs: 'metrics:read service', url: '/traffic' },
  getMetrics: { needs: 'metrics:read service', url: '/metrics' },
  getOpenApi: { needs: 'public', url: '/openapi.json' },
};

/** The alias `catalog-a` of a collection that has no vectors. */
export async function addAlias(database: Database): Promise<void> {
  const shape = {
    vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
    description: null,
    labels: {},
  } as const;
  await database.createCollection({ id: 'catalog-9', ...shape });
  await database.setAliases([{ name: 'catalog-a', collection: 'catalog-9' }], {
    authorize() {},
    locate: () => field(),
  });
}

/** A collection with two vectors of dimension 2. */
export async function fillCollection(database: Database, id = COLLECTION): Promise<void> {
  await database.createCollection({
    id,
    vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
    description: null,
    labels: {},
  });
  const batch = batchOf([
    { id: 'a', values: [1, 0], metadata: '{}' },
    { id: 'b', values: [0, 1], metadata: '{}' },
  ]);
  await database.collection(id).write(batch, { mode: 'upsert' });
}
