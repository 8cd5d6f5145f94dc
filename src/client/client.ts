// The typed client, entry point `sagitta/client`: a method for every route, pages as async
// iterators, streams in and out, no dependency but fetch. Shapes are the wire's own (see types.ts).

import { createCalls } from './calls.js';
import { pathPart } from './options.js';
import { createServiceMethods, type ServiceMethods } from './service.js';
import { createSharedRoutes, type SharedRoutes } from './shared-routes.js';
import { createTransport, type TransportOptions } from './transport.js';
import { createVectors, type Vectors } from './vectors.js';

export type { ErrorCode } from '../common/errors.js';
export type { JsonObject, Metric } from '../common/types.js';
export type { CircuitBreakerOptions } from './circuit-breaker.js';
export { SagittaClientError, type TransportCode } from './error.js';
export type { CallOptions, WriteOptions } from './options.js';
export type { ReplyBody } from './reply-body.js';
export type { RetryOptions } from './retry.js';
export type { Backups, Collections, Keys, Service } from './service.js';
export type { SharedRoutes as DefaultCollection } from './shared-routes.js';
export type {
  ExportOptions,
  JoinReply,
  JoinRequest,
  QueryStreamOptions,
  StreamReply,
  Streams,
  WriteBytesOptions,
  WriteStreamOptions,
} from './streams.js';
export type { TransportOptions as ClientOptions } from './transport.js';
export type * from './types.js';
export type { ByteSource, Resendable } from './upload.js';
export { decodeValues, encodeValues } from './values.js';
export type { Include, RecallOptions, Vectors } from './vectors.js';

export interface Client extends ServiceMethods {
  /** The vectors of one collection. Sends nothing by itself. */
  collection(id: string): Vectors;
  /** The collection that the service is configured with. */
  readonly defaultCollection: SharedRoutes;
}

/**
 * Sends nothing by itself. Throws SagittaClientError (`invalid_argument`) when `baseUrl` is not an
 * HTTP address. Methods throw SagittaClientError, or the reason of the signal that ended them.
 */
export function createClient(options: TransportOptions): Client {
  const calls = createCalls(createTransport(options));
  return {
    ...createServiceMethods(calls),
    collection: (id) => createVectors(calls, `/collections/${pathPart(id)}`),
    defaultCollection: createSharedRoutes(calls),
  };
}
