// A route is one object that Fastify serves and OpenAPI describes, so that the two cannot differ. Paths are written
// as in OpenAPI: `/collections/{id}`.

import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { AuditOperation } from '../../common/audit.js';
import type { ErrorCode } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { Logger } from '../../common/logger.js';
import type { Preparation } from '../../common/preparation.js';
import type { ServiceProblem } from '../../common/problems.js';
import type { BackupService } from '../../database/admin/backup.js';
import type { Database } from '../../database/database.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { TrafficHistory } from '../../platform/traffic-history.js';
import type { Authenticator } from '../auth/authenticator.js';
import type { NamedCollection, RouteAccess } from '../auth/authorization.js';
import type { RequestForwarder } from '../cluster/request-forwarder.js';
import type { Embedder } from '../embedding/embedder.js';
import { rateKindOf } from '../limits/rate-limit.js';
import type { Schemas } from '../schemas/all.js';
import type { SlowestQueries } from '../telemetry/slowest-queries.js';
import type { StreamType } from '../wire/media-types.js';
import type { Properties } from '../wire/property-names.js';
import type { RouteReply } from '../wire/reply.js';
import type { RequestContext } from './request-context.js';

/** The services that the handlers of routes use. */
export interface RouteServices {
  readonly database: Database;
  readonly backups: BackupService;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  readonly logger: Logger;
  readonly slowQueryMs: number;
  readonly slowestQueries: SlowestQueries;
  readonly traffic: TrafficHistory;
  readonly schemas: Schemas;
  readonly authenticator: Authenticator;
  readonly embedder: Embedder;
  /** The collection of requests that name none; null if such requests are errors. */
  readonly defaultCollection: string | null;
  /** Null outside a cluster. */
  readonly forwarder: RequestForwarder | null;
  /** Sample data that is loaded before requests are answered; null or absent for none. */
  readonly preparation?: Preparation | null;
  /** What is wrong with this process at the moment. */
  readonly problems: () => readonly ServiceProblem[];
  /** Whether the service is stopping, so that long requests should end. */
  readonly isStopping: () => boolean;
}

/** `Input` is what `parse` returns. */
export interface Route<QuerySchema extends z.ZodObject = z.ZodObject, Input = undefined> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly operationId: string;
  readonly tag: 'Collections' | 'Vectors' | 'Query' | 'Keys' | 'Backups' | 'Service';
  readonly summary: string;
  /** The access that the route requires. */
  readonly access: RouteAccess;
  readonly description?: string;
  readonly query?: QuerySchema;
  /** Validated by `parse` or the handler; null if the route accepts no body. */
  readonly body: z.ZodType | null;
  readonly reply: z.ZodType;
  /** Here and below: headers of the request and of a 200 reply that the route supports. */
  readonly takesIdempotencyKey?: boolean;
  readonly takesIfMatch?: boolean;
  readonly sendsETag?: boolean;
  readonly sendsLocation?: boolean;
  readonly sendsServerTiming?: boolean;
  /** Sagitta-Sequence: the snapshot that was read, for replies whose body does not contain it. */
  readonly sendsSequence?: boolean;
  /** Sagitta-Warnings, for replies whose body contains no `warnings`. */
  readonly sendsWarnings?: boolean;
  /** Content-Disposition. */
  readonly sendsFile?: boolean;
  /** Content types besides JSON whose bodies the handler reads as they arrive. */
  readonly streamTypes?: readonly StreamType[];
  /** The content types of the reply; JSON only if absent. */
  readonly replyTypes?: readonly string[];
  /** A reply that is neither 200 nor a problem. */
  readonly otherReply?: { readonly status: number; readonly description: string };
  /** When the reply is a redirect (307) with a relative Location instead, in words. */
  readonly redirects?: string;
  /** The name of the operation in the audit log, `collection.create`; absent if it is not logged. */
  readonly audit?: AuditOperation;
  /** Error codes besides those of every route. */
  readonly errors: readonly ErrorCode[];
  /** Whether the node that receives the request carries it out, although it is not a read. */
  readonly runsOnAnyNode?: boolean;
  /** Whether a request is a write that any node which holds the collection carries out, as its headers say. */
  isBulk?(request: Pick<FastifyRequest, 'headers' | 'query'>): boolean;
  /** Whether the work continues beyond the deadline and after the client has disconnected. */
  readonly mayTakeLong?: boolean;
  /** Whether the route replies in every state of the service, and under overload. */
  readonly isAlwaysServed?: boolean;
  /** Whether only other nodes of a cluster can use the route; it is not described. */
  readonly isInternal?: boolean;
  /** Whether the route is for operators: served only without the prefix `/v1`, and regardless of Accept. */
  readonly isOperational?: boolean;
  /** Parses and validates the body of a request for `touches` and `handle`. */
  parse?(request: RequestContext<Properties<z.output<QuerySchema>>>): Promise<Input>;
  /**
   * The collections whose rows the request reads or writes, with the names by which it is authorized for them. Without
   * this function, a route whose scope is about vectors touches the collection in the path, and other routes none.
   */
  touches?(
    request: RequestContext<Properties<z.output<QuerySchema>>>,
    input: Input,
  ): readonly NamedCollection[];
  /** Runs on a node that may carry out the request. */
  handle(
    request: RequestContext<Properties<z.output<QuerySchema>>>,
    input: Input,
  ): RouteReply | Promise<RouteReply>;
}

/** Whose node carries out a request: any node, or the owner of the catalogue or of the collection that it touches. */
export type Owner = 'any' | 'catalogue' | 'collection';

type AccessOfRoute = Pick<Route, 'access' | 'method' | 'runsOnAnyNode'>;

export function ownerOf({ access, method, runsOnAnyNode = false }: AccessOfRoute): Owner {
  if (rateKindOf(access) !== 'write' || method === 'GET' || runsOnAnyNode) return 'any';
  const isOfVectors = typeof access === 'object' && access.scope === 'vectors:write';
  return isOfVectors ? 'collection' : 'catalogue';
}

/** Whether the route touches the collection in the path, which the headers of a request determine. */
export function touchesPath({ access, touches }: Pick<Route, 'access' | 'touches'>): boolean {
  if (touches !== undefined || typeof access === 'string') return false;
  return access.scope.startsWith('vectors:') && access.on === 'path';
}

/** Whether the route may need rows of a collection that another node may hold. */
export function mayNeedRows(route: Route): boolean {
  return route.touches !== undefined || touchesPath(route);
}

/** Types the arguments of the functions of a route, and drops the types for the list of routes. */
export function defineRoute<QuerySchema extends z.ZodObject, Input = undefined>(
  route: Route<QuerySchema, Input>,
): Route {
  return route as unknown as Route;
}
