// The entry point of `@sagitta/client`: a method for every route, pages as async iterators, streams in
// both directions, and no dependency but fetch.

import type { JsonObject } from '../../../src/common/types.js';
import { createRequests, pathSegment } from './requests.js';
import { createServiceMethods, type ServiceMethods } from './service.js';
import { createSharedRoutes, type SharedRoutes } from './shared-routes.js';
import { createTransport, type TransportOptions } from './transport.js';
import { createVectors, type Vectors } from './vectors.js';

export type { CircuitBreakerOptions } from '../../../src/common/circuit-breaker.js';
export type { ErrorCode } from '../../../src/common/errors.js';
export type { DeclaredTypes, Json, JsonObject, Metric } from '../../../src/common/types.js';
export {
  type CollectionVector,
  type DenseVector,
  type DimensionedVector,
  denseVectors,
  VECTOR_MEMBERS,
  vectorsOf,
} from './collection-vectors.js';
export { type ConnectionProblem, connectionProblemOf } from './connection-hint.js';
export { errorOfReply, SagittaClientError, type TransportCode } from './error.js';
export type { Condition, Filter, MetadataPath } from './filter.js';
export type {
  ProjectionNeighbors,
  ProjectionReply,
  ProjectionRequest,
} from './projection.js';
export { proxyHint } from './proxy.js';
export type { ReplyBody } from './reply-body.js';
export type { CallOptions, ProgressOptions, WriteOptions } from './requests.js';
export type { RetryOptions } from './retry.js';
export type { Aliases, Audit, Backups, Collections, Keys, Service } from './service.js';
export type { SharedRoutes as DefaultCollection } from './shared-routes.js';
export type { StreamFormat, StreamReply } from './stream-reply.js';
export type {
  ColumnExportOptions,
  ExportOptions,
  JoinReply,
  JoinRequest,
  QueryStreamOptions,
  Streams,
  WriteBytesOptions,
  WriteStreamOptions,
} from './streams.js';
export type { TransportOptions as ClientOptions } from './transport.js';
export type * from './types.js';
export type { ByteSource, Resendable } from './upload.js';
export { decodeValues, encodeValues } from './values.js';
export type { Include, Vectors } from './vectors.js';
export type { OnWarning, WarnedRequest } from './warnings.js';

export interface Client extends ServiceMethods {
  /**
   * The vectors of one collection. `Metadata` is the type that the program stores there. No request is
   * sent and metadata is not checked; give the collection a `schema` for that.
   */
  collection<Metadata extends object = JsonObject>(id: string): Vectors<Metadata>;
  /** The server's default collection, if one is configured. */
  readonly defaultCollection: SharedRoutes;
}

/**
 * Creates a client without sending a request. Throws SagittaClientError (`invalid_argument`) when
 * `baseUrl` is not an HTTP URL. Methods throw SagittaClientError, or the reason of the abort signal.
 */
export function createClient(options: TransportOptions): Client {
  const requests = createRequests(createTransport(options));
  return {
    ...createServiceMethods(requests),
    collection: <Metadata extends object>(id: string) =>
      createVectors(requests, `/collections/${pathSegment(id)}`) as unknown as Vectors<Metadata>,
    defaultCollection: createSharedRoutes(requests),
  };
}
