// A route is one object that Fastify serves and OpenAPI describes, so that the two cannot differ. Paths are written
// as in OpenAPI: `/collections/{id}`.

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
import type { RouteAccess } from '../auth/authorization.js';
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

export interface Route<QuerySchema extends z.ZodObject = z.ZodObject> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly operationId: string;
  readonly tag: 'Collections' | 'Vectors' | 'Query' | 'Keys' | 'Backups' | 'Service';
  readonly summary: string;
  /** The access that the route requires. */
  readonly access: RouteAccess;
  readonly description?: string;
  readonly query?: QuerySchema;
  /** Validated by the handler; null if the route accepts no body. */
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
  /** Whether the handler also reads other collections than the one in the path, which it names in `requireRows`. */
  readonly readsOtherCollections?: boolean;
  /** Whether the work continues beyond the deadline and after the client has disconnected. */
  readonly mayTakeLong?: boolean;
  /** Whether the route replies in every state of the service, and under overload. */
  readonly isAlwaysServed?: boolean;
  /** Whether only other nodes of a cluster can use the route; it is not described. */
  readonly isInternal?: boolean;
  /** Whether the route is for operators: served only without the prefix `/v1`, and regardless of Accept. */
  readonly isOperational?: boolean;
  handle(
    request: RequestContext<Properties<z.output<QuerySchema>>>,
  ): RouteReply | Promise<RouteReply>;
}

/**
 * The node of a cluster that carries out the route: `any`, the owner of the `catalogue`, the owner of the `collection`
 * in the path, or the owner of the collection that the handler finds (`named`).
 */
export function ownerOf({
  access,
  method,
  runsOnAnyNode = false,
}: Route): 'any' | 'catalogue' | 'collection' | 'named' {
  if (rateKindOf(access) !== 'write' || method === 'GET' || runsOnAnyNode) return 'any';
  if (typeof access === 'string' || access.scope !== 'vectors:write') return 'catalogue';
  return access.on === 'path' ? 'collection' : 'named';
}

/** Whether the route reads rows of the collection in the path and of no other. */
export function readsCollectionInPath({ access, readsOtherCollections = false }: Route): boolean {
  return (
    typeof access === 'object' &&
    access.scope === 'vectors:read' &&
    access.on === 'path' &&
    !readsOtherCollections
  );
}

/** Whether the route may need rows of a collection that another node may hold. */
export function mayNeedRows(route: Route): boolean {
  const { access } = route;
  if (typeof access === 'string') return false;
  return (
    access.scope.startsWith('vectors:') || (ownerOf(route) === 'catalogue' && access.on === 'path')
  );
}

/** Types the query of the handler by its schema, and drops the type for the list of routes. */
export function defineRoute<QuerySchema extends z.ZodObject>(route: Route<QuerySchema>): Route {
  return route as unknown as Route;
}
