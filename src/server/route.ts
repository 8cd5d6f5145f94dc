// What a route is: one object that Fastify serves and OpenAPI describes, so that the two cannot
// differ. Paths are written as OpenAPI writes them, `/collections/{id}`.

import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { Principal } from '../common/access.js';
import type { ErrorCode } from '../common/errors.js';
import type { Limits } from '../common/limits.js';
import type { Logger } from '../common/logger.js';
import type { BackupService } from '../database/api.js';
import type { Database } from '../database/database.js';
import type { WorkerPool } from '../platform/pool.js';
import type { Authenticator } from './auth/authenticator.js';
import type { RouteAccess } from './auth/authorization.js';
import type { Guards } from './limits/guards.js';
import type { StreamType } from './media-types.js';
import type { IssueLayout, ProblemContext } from './problem.js';
import type { StoredReply } from './replies/reply.js';
import type { ReplyPieces } from './replies/reply-stream.js';
import type { Schemas } from './schemas/all.js';
import type { RequestTelemetry } from './telemetry/request-telemetry.js';
import type { BodyStream } from './transport/body-stream.js';

/** What the handlers of routes work with. */
export interface RouteServices {
  readonly database: Database;
  readonly backups: BackupService;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  readonly logger: Logger;
  readonly slowQueryMs: number;
  readonly schemas: Schemas;
  readonly authenticator: Authenticator;
  readonly guards: Guards;
  /** Of requests that name none. */
  readonly defaultCollection: string | null;
  /** Whether what takes long shall end soon. */
  readonly isStopping: () => boolean;
}

/** A body that never changes may be bytes, which all its readers share. */
export interface RouteReply extends Omit<StoredReply, 'body'> {
  readonly body: string | Buffer | ReplyPieces;
}

export interface RouteRequest<Query> {
  /** Method and path of the route, without a prefix. */
  readonly operation: string;
  /** Decoded, by the names in the path of the route. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  /** The query as sent, by name; for the digest of an idempotent request. */
  readonly rawQuery: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
  /** Without parameters; undefined where there is no body. */
  readonly contentType: string | undefined;
  /** The bytes as sent; empty when there are none. */
  readonly body: Uint8Array;
  /** In place of `body` when `contentType` is one of the route's `streamTypes`; null else. */
  readonly bodyStream: BodyStream | null;
  /** Aborted when the deadline passes or the client goes away. */
  readonly signal: AbortSignal;
  readonly problemContext: ProblemContext;
  /** How pointers spell the fields of this request; by default members of the body, or parameters where the route takes no body. */
  issueLayout: IssueLayout;
  readonly principal: Principal;
  /** Where the handler tells what its work was about, and how long parts of it took. */
  readonly telemetry: RequestTelemetry;
  /**
   * For collections that the path does not name: throws `collection_not_found` or
   * `insufficient_scope` unless the principal may do this to it. `isNew`: it shall be made.
   */
  authorize(collectionId: string, options?: { isNew?: boolean }): void;
  /**
   * Says what the request costs in all: queries, or vectors read, written or deleted by id. Before
   * that it has paid 1. Throws `rate_limited`; nothing may have been done yet.
   */
  charge(cost: number): void;
  /**
   * Says what the next part of a stream costs, in the same measure. Where `charge` would refuse, this
   * waits. Throws `credentials_invalid` and the like when the credential has lost what it needs, and
   * rejects with the signal's reason.
   */
  chargeOrWait(cost: number): Promise<void>;
  /**
   * Of these content types the one that the client likes best. Throws `not_acceptable` for none. For
   * routes whose choice depends on more than the route.
   */
  chooseReplyType(offered: readonly string[]): string;
  /**
   * Says how long its reply is by now, while a long one is made. Throws `overloaded` when there is no
   * room for it, and `deadline_exceeded` when its client has gone away.
   */
  reserveReply(byteCount: number): void;
}

export interface Route<QuerySchema extends z.ZodObject = z.ZodObject> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly operationId: string;
  readonly tag: 'Collections' | 'Vectors' | 'Query' | 'Keys' | 'Backups' | 'Service';
  readonly summary: string;
  /** What it asks of who calls it. */
  readonly access: RouteAccess;
  readonly description?: string;
  readonly query?: QuerySchema;
  /** Described here, checked by the handler; null for routes that take no body. */
  readonly body: z.ZodType | null;
  readonly reply: z.ZodType;
  /** Headers of the request and of a 200 that the route knows. */
  readonly takesIdempotencyKey?: boolean;
  readonly takesIfMatch?: boolean;
  readonly sendsETag?: boolean;
  readonly sendsLocation?: boolean;
  readonly sendsServerTiming?: boolean;
  /** The snapshot that is read, for replies whose body says nothing of it. */
  readonly sendsSequence?: boolean;
  /** Content-Disposition. */
  readonly sendsFile?: boolean;
  /** Where bodies may be more than JSON: types that the handler reads as they arrive. */
  readonly streamTypes?: readonly StreamType[];
  /** Where the reply is not JSON alone: all that it may be. */
  readonly replyTypes?: readonly string[];
  /** A reply that is neither 200 nor a problem. */
  readonly otherReply?: { readonly status: number; readonly description: string };
  /** What the audit log calls it, `collection.create`; absent for what is not worth a line there. */
  readonly audit?: string;
  /** Codes beyond those that every route can give. */
  readonly errors: readonly ErrorCode[];
  /** Whether the work goes on beyond the deadline, and when the client has gone away. */
  readonly mayTakeLong?: boolean;
  /** Whether the route answers whatever the state of the database. */
  readonly isAlwaysServed?: boolean;
  /** For those who run the service: never under `/v1`, and whatever the client accepts. */
  readonly isOperational?: boolean;
  handle(request: RouteRequest<z.output<QuerySchema>>): RouteReply | Promise<RouteReply>;
}

/** Keeps the type of the query for the handler while the list of routes forgets it. */
export function defineRoute<QuerySchema extends z.ZodObject>(route: Route<QuerySchema>): Route {
  return route as unknown as Route;
}
